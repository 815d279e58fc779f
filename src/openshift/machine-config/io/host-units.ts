/** Controls systemd units of the host that MachineConfigs change. Source: org.freedesktop.systemd1(5). */

import { createManagerBus, type ManagerBus, ManagerError } from '../../../wire/dbus/systemd-manager.ts';
import type { HostUnits } from '../daemon/port.ts';

const MODE = 'replace';

export function createHostUnits(bus: ManagerBus = createManagerBus()): HostUnits {
  const job = (member: string, unit: string, mode = MODE): Promise<void> =>
    bus.job(member, 'ss', (body) => {
      body.string(unit);
      body.string(mode);
    });
  return {
    daemonReload: () => bus.call('Reload', '', () => {}),
    reload: (unit) => job('ReloadUnit', unit),
    restart: (unit) => job('RestartUnit', unit),
    tryRestart: (unit) => job('TryRestartUnit', unit),
    async stop(unit) {
      try {
        await job('StopUnit', unit);
      } catch (error) {
        if (!(error instanceof ManagerError && error.errorName.endsWith('.NoSuchUnit'))) throw error;
      }
    },
    // Start the target irreversibly: all units stop in order, and no other job can cancel the reboot.
    reboot: () =>
      bus.call('StartUnit', 'ss', (body) => {
        body.string('reboot.target');
        body.string('replace-irreversibly');
      }),
  };
}
