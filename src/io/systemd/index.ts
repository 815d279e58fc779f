/**
 * Slices through the service manager's own command. Slice units need no unit file, so starting one makes it; its properties are set
 * for this boot only. Source: systemd.slice(5), systemctl(1) set-property --runtime.
 */
import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { promisify } from 'node:util';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { SliceManager } from '../../core/cgroup/port.ts';

const execute = promisify(execFile);
const TIMEOUT_MS = 10_000;

/** True when systemd is this host's service manager. Source: sd_booted(3). */
export async function systemdRuns(): Promise<boolean> {
  try {
    await access('/run/systemd/system');
    return true;
  } catch {
    return false;
  }
}

export function createSliceManager(options: { readonly systemctl?: string } = {}): SliceManager {
  const systemctl = options.systemctl ?? 'systemctl';
  const run = async (args: readonly string[]): Promise<void> => {
    try {
      await execute(systemctl, args, { timeout: TIMEOUT_MS });
    } catch (error) {
      throw new CodedError('systemd', `${systemctl} ${args.join(' ')}: ${messageOf(error)}`, { cause: error });
    }
  };
  return {
    async ensure(slice, properties) {
      await run(['start', '--', slice]);
      if (properties.length > 0) await run(['set-property', '--runtime', '--', slice, ...properties]);
    },
    async stop(slice) {
      try {
        await run(['stop', '--', slice]);
      } catch (error) {
        if (!/not loaded/.test(messageOf(error))) throw error;
      }
    },
  };
}
