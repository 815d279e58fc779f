/**
 * The service manager of a systemd host: slices for pods, scopes for processes that must outlive the host process, and
 * detection of a shutdown. Source: org.freedesktop.systemd1(5), systemd.slice(5), systemd.scope(5).
 */
import { access } from 'node:fs/promises';
import type { Writer } from '../../../wire/dbus/dbus-messages.ts';
import { createManagerBus, type ManagerBus, ManagerError } from '../../../wire/dbus/systemd-manager.ts';
import type { SliceManager, UnitProperty } from '../../core/cgroups/port.ts';

/** Whether systemd is this host's service manager. Source: sd_booted(3). */
export async function systemdRuns(): Promise<boolean> {
  try {
    await access('/run/systemd/system');
    return true;
  } catch {
    return false;
  }
}

export interface ServiceManager extends SliceManager {
  /**
   * Moves a process into a new scope `name` of `slice`, which ends with its last process. An existing scope is no
   * error.
   */
  scope(
    name: string,
    options: { readonly slice: string; readonly description: string; readonly pid: number },
  ): Promise<void>;
  /** True while the host is being shut down or rebooted. */
  goingDown(): Promise<boolean>;
}

const ERROR_PREFIX = 'org.freedesktop.systemd1.';
const ACCOUNTING = ['CPUAccounting', 'MemoryAccounting', 'TasksAccounting', 'IOAccounting'];

export function createServiceManager(bus: ManagerBus = createManagerBus()): ServiceManager {
  const setProperties = (unit: string, properties: readonly UnitProperty[]): Promise<void> =>
    bus.call('SetUnitProperties', 'sba(sv)', (body) => {
      body.string(unit);
      // The argument `runtime`: the change applies only until the next boot.
      body.boolean(true);
      body.array(8, () => {
        for (const property of properties) writeNumber(body, property);
      });
    });
  const startTransient = (unit: string, properties: (body: Writer) => void): Promise<void> =>
    bus.job('StartTransientUnit', 'ssa(sv)a(sa(sv))', (body) => {
      body.string(unit);
      body.string('replace');
      body.array(8, () => properties(body));
      body.array(8, () => {});
    });
  const jobOn = (member: 'StartUnit' | 'StopUnit', unit: string): Promise<void> =>
    bus.job(member, 'ss', (body) => {
      body.string(unit);
      body.string('replace');
    });
  return {
    async ensure(slice, properties) {
      try {
        await startTransient(slice, (body) => {
          writeText(body, 'Description', 'pods of this node');
          // When the host shuts down, the kubelet stops the pods in order, so systemd must not stop the slices by
          // itself.
          writeFlag(body, 'DefaultDependencies', false);
          for (const name of ACCOUNTING) writeFlag(body, name, true);
          for (const property of properties) writeNumber(body, property);
        });
      } catch (error) {
        if (!isManagerError(error, 'UnitExists')) throw error;
        if (properties.length > 0) await setProperties(slice, properties);
        await jobOn('StartUnit', slice);
      }
    },
    async stop(slice) {
      try {
        await jobOn('StopUnit', slice);
      } catch (error) {
        if (!isManagerError(error, 'NoSuchUnit')) throw error;
      }
    },
    async scope(name, { slice, description, pid }) {
      try {
        await startTransient(name, (body) => {
          writeText(body, 'Description', description);
          writeText(body, 'Slice', slice);
          writeFlag(body, 'DefaultDependencies', false);
          writeText(body, 'CollectMode', 'inactive-or-failed');
          body.align(8);
          body.string('PIDs');
          body.variant('au', () => body.array(4, () => body.uint32(pid)));
        });
      } catch (error) {
        if (!isManagerError(error, 'UnitExists')) throw error;
      }
    },
    goingDown: async () => (await bus.property('SystemState')) === 'stopping',
  };
}

function writeText(body: Writer, name: string, value: string): void {
  body.align(8);
  body.string(name);
  body.variant('s', () => body.string(value));
}

function writeFlag(body: Writer, name: string, value: boolean): void {
  body.align(8);
  body.string(name);
  body.variant('b', () => body.boolean(value));
}

function writeNumber(body: Writer, { name, value }: UnitProperty): void {
  body.align(8);
  body.string(name);
  body.variant('t', () => body.uint64(value));
}

const isManagerError = (error: unknown, name: string): boolean =>
  error instanceof ManagerError && error.errorName === ERROR_PREFIX + name;
