/** Runs postStart and preStop handlers. Source: pkg/kubelet/lifecycle/handlers.go. */
import type { Container, LifecycleHandler } from '../../../api/generated/core/v1.ts';
import { type Clock, MAX_TIMER_MS } from '../../../base/time/clock.ts';
import { KUBERNETES_VERSION } from '../../../base/versions/version.ts';
import type { Runtime } from '../../../runtime/port.ts';
import { portOf } from '../../probes/checks.ts';
import type { ProbeNetwork } from '../../probes/port.ts';

const MAX_OUTPUT_BYTES = 1024;

export interface HookTarget {
  readonly runtime: Runtime;
  readonly network: ProbeNetwork;
  readonly clock: Clock;
  readonly container: Container;
  readonly containerId: string;
  readonly ip: string;
}

/** Throws an Error with the reason when the handler fails. */
export async function runHook(handler: LifecycleHandler, target: HookTarget, limitMs: number): Promise<void> {
  // The limit of a preStop hook is the pod's grace period, which may be any 64-bit number.
  const timeoutMs = Math.min(limitMs, MAX_TIMER_MS);
  if (handler.exec !== undefined) {
    const command = handler.exec.command ?? [];
    // A hook may start processes that keep running beside the container's main process.
    const options = { timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES, leavesProcesses: true };
    const result = await target.runtime.execSync(target.containerId, command, options);
    if (result.exitCode !== 0) {
      const output = Buffer.concat([result.stdout, result.stderr]).subarray(0, MAX_OUTPUT_BYTES).toString('utf8');
      throw new Error(
        `Exec lifecycle hook (${JSON.stringify(command)}) exited with ${result.exitCode}, message: ${JSON.stringify(output)}`,
      );
    }
    return;
  }
  if (handler.httpGet !== undefined) {
    const { host, port, path = '/', scheme, httpHeaders } = handler.httpGet;
    const address = host || target.ip;
    const url = new URL(
      `${scheme === 'HTTPS' ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${portOf(port, target.container)}${path.startsWith('/') ? path : `/${path}`}`,
    );
    const headers: Record<string, string> = {
      'user-agent': `kube-lifecycle/${KUBERNETES_VERSION.major}.${KUBERNETES_VERSION.minor}`,
    };
    for (const header of httpHeaders ?? []) headers[header.name.toLowerCase()] = header.value;
    const answer = await target.network.httpGet(url, headers, AbortSignal.timeout(timeoutMs));
    if (answer.code >= 400) throw new Error(`Http lifecycle hook (${path}) failed with statuscode: ${answer.code}`);
    return;
  }
  if (handler.tcpSocket !== undefined) {
    const { host, port } = handler.tcpSocket;
    await target.network.connect(host || target.ip, portOf(port, target.container), timeoutMs);
    return;
  }
  if (handler.sleep !== undefined) {
    const ms = Math.min(Number(handler.sleep.seconds) * 1000, timeoutMs);
    await new Promise<void>((resolve) => {
      target.clock.setTimer(ms, resolve);
    });
    return;
  }
  throw new Error('invalid handler: neither exec, httpGet, tcpSocket nor sleep');
}
