/**
 * Attaches to a running container. Output is read from the container's log, so a stalled client never stalls the
 * container. Input is sent to its monitor.
 */

import type { WatchPath } from '../../../base/files/path-watch-port.ts';
import { type AttachOptions, type ProcessStreams, RuntimeError } from '../../port.ts';
import type { ContainerRecord } from '../containers/records.ts';
import { chargeToPod } from '../exec/exec-cgroup.ts';
import { resizeTerminal } from './conmon.ts';
import { followLog } from './log-follow.ts';
import { type MonitorInput, openMonitorInput } from './monitor-input.ts';
import { outputPipe } from './streams.ts';

/**
 * `ended` resolves when the container has exited. Throws RuntimeError 'internal' if input is requested and not
 * available.
 */
export async function attachToContainer(
  { socat, watchPath }: { readonly socat: string; readonly watchPath: WatchPath },
  bundle: string,
  container: ContainerRecord,
  options: AttachOptions,
  ended: Promise<void>,
): Promise<ProcessStreams> {
  if (options.stdin && !container.stdin) {
    throw new RuntimeError(
      'internal',
      `container ${container.name} has no open standard input (stdin: true is not set)`,
    );
  }
  const follower = await followLog(container.logPath, watchPath);
  const stdout = outputPipe();
  const stderr = outputPipe();
  let input: MonitorInput | undefined;
  try {
    input = options.stdin ? await openMonitorInput(socat, bundle) : undefined;
    if (input !== undefined) await chargeToPod(container.cgroups, input.pid);
  } catch (error) {
    follower.close();
    await follower.run(() => Promise.resolve());
    throw error;
  }
  const wantStderr = options.stderr && !options.tty;
  const reading = follower
    .run((stream, content) => {
      if (stream === 'stdout') return options.stdout ? stdout.push(content) : Promise.resolve();
      return wantStderr ? stderr.push(content) : Promise.resolve();
    })
    .finally(() => {
      stdout.end();
      stderr.end();
      input?.close();
    });
  void ended.then(() => follower.finish());
  return {
    stdin: input?.sink,
    stdout: options.stdout ? stdout.readable : undefined,
    stderr: wantStderr ? stderr.readable : undefined,
    resize: async (columns, rows) => {
      if (container.tty) await resizeTerminal(bundle, columns, rows);
    },
    exited: reading.then(() => 0),
    close: () => {
      follower.close();
      input?.close();
    },
  };
}
