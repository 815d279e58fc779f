import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { KubeletDeps } from '../../kubelet/index.ts';
import { watchPath } from '../../kubelet/io/host-facts/index.ts';
import { createPluginSockets } from '../../kubelet/io/plugins/plugin-sockets.ts';
import { createCdiFiles } from '../../rigs/io/fixtures/cdi-files.ts';
import { createFixtureScanner } from '../../rigs/io/fixtures/scanner.ts';
import { createRigHost } from '../../rigs/io/host.ts';
import type { Settings } from '../config/settings.ts';
import { RIG_RECORDINGS } from '../control/host-logs.ts';
import { systemClock as clock } from '../process/process.ts';

/**
 * Devices of this host: sockets of device plug-ins below `/var/lib/kubelet`, the directory that plug-ins expect, and
 * the declared fixtures.
 */
export function hostDevices({ root, fixtures, rigPower }: Settings, log: Log): NonNullable<KubeletDeps['devices']> {
  return {
    sockets: createPluginSockets({ clock, log: log.named('plugins') }),
    cdi: createCdiFiles({ directories: [join(root, 'etc/cdi'), join(root, 'var/run/cdi')], log: log.named('cdi') }),
    root: join(root, 'var/lib/kubelet'),
    scanner: createFixtureScanner({ declared: fixtures, watchPath, log: log.named('fixtures') }),
    rigs: createRigHost({
      directory: join(root, 'var/log', RIG_RECORDINGS),
      commands: rigPower,
      nowMs: () => clock.nowMs(),
    }),
  };
}
