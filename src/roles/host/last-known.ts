/** What the API server said last, kept on this host for a start without it. */
import type { Log } from '../../base/log.ts';
import { createLastKnown, type LastKnown } from '../../client/index.ts';
import { createSealedFiles } from '../../io/sealed-files/index.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process.ts';

export function openLastKnown({ paths, nodeName }: Pick<Settings, 'paths' | 'nodeName'>, log: Log): LastKnown {
  const files = createSealedFiles({ directory: paths.lastKnown, keyFile: paths.lastKnownKey, nodeName });
  return createLastKnown({ files, clock, log });
}
