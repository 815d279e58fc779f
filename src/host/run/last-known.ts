/** Last known API objects. This host stores them for a start without the API server. */
import type { Log } from '../../base/log.ts';
import { createLastKnown, type LastKnown } from '../../client/index.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock, settlesWithin } from '../process/process.ts';
import { createSealedFiles } from '../process/sealed-files/sealed-files.ts';

const STOP_MS = 2_000;

/**
 * Opens the stored objects. The caller must stop this before pods end: the end of a pod removes its objects, but the
 * next start may need them without the API server.
 */
export function openLastKnown({ paths, nodeName }: Pick<Settings, 'paths' | 'nodeName'>, log: Log): LastKnown {
  const files = createSealedFiles({ directory: paths.lastKnown, keyFile: paths.lastKnownKey, nodeName });
  const state = createLastKnown({ files, clock, log });
  return {
    read: (set) => state.read(set),
    keep: (set, content, pace) => state.keep(set, content, pace),
    stop: async () => {
      if (!(await settlesWithin(state.stop(), STOP_MS)))
        log.warn('last known state not written in time', { ms: STOP_MS });
    },
  };
}
