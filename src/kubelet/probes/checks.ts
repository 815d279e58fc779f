/** One attempt of a probe. Source: pkg/probe/{exec,http,tcp,grpc}. */
import type { Container, HTTPGetAction, Probe } from '../../api/generated/core/v1.ts';
import { messageOf } from '../../base/errors.ts';
import { KUBERNETES_VERSION } from '../../base/versions/version.ts';
import { type Runtime, RuntimeError } from '../../runtime/port.ts';
import type { ProbeOutcome } from '../core/pod-plan/probe.ts';
import { MAX_PROBE_OUTPUT_BYTES, type ProbeNetwork } from './port.ts';

export interface CheckResult {
  readonly outcome: ProbeOutcome;
  readonly output: string;
  /** Whether the successful result is recorded as an event of the pod. */
  readonly warning?: boolean;
}

export interface CheckTarget {
  readonly runtime: Runtime;
  readonly network: ProbeNetwork;
  readonly container: Container;
  readonly containerId: string;
  /** Address of the pod, or of the node for host-network pods. */
  readonly ip: string;
}

const MAX_REDIRECTS = 10;

/** Never rejects: every error is a failed probe. */
export async function check(probe: Probe, target: CheckTarget, timeoutMs: number): Promise<CheckResult> {
  try {
    if (probe.exec !== undefined) return await checkExec(target, probe.exec.command ?? [], timeoutMs);
    if (probe.httpGet !== undefined) return await checkHttp(target, probe.httpGet, timeoutMs);
    if (probe.tcpSocket !== undefined) {
      const port = portOf(probe.tcpSocket.port, target.container);
      return await checkTcp(target.network, probe.tcpSocket.host || target.ip, port, timeoutMs);
    }
    if (probe.grpc !== undefined) {
      return await checkGrpc(target, probe.grpc.port, probe.grpc.service ?? '', timeoutMs);
    }
    return { outcome: 'failure', output: `missing probe handler for ${target.container.name}` };
  } catch (error) {
    return { outcome: 'failure', output: messageOf(error) };
  }
}

/** Resolves a port number or the name of a container port. Throws when the name does not exist. */
export function portOf(port: number | string, container: Container): number {
  const number = typeof port === 'number' ? port : /^\d+$/.test(port) ? Number(port) : undefined;
  const found = number ?? container.ports?.find((each) => each.name === port)?.containerPort;
  if (found === undefined) throw new Error(`couldn't find port: ${JSON.stringify(port)}`);
  if (found < 1 || found > 65535) throw new Error(`invalid port number: ${found}`);
  return found;
}

async function checkExec(target: CheckTarget, command: readonly string[], timeoutMs: number): Promise<CheckResult> {
  try {
    const options = { timeoutMs, maxOutputBytes: MAX_PROBE_OUTPUT_BYTES };
    const result = await target.runtime.execSync(target.containerId, command, options);
    const output = Buffer.concat([result.stdout, result.stderr]).subarray(0, MAX_PROBE_OUTPUT_BYTES).toString('utf8');
    return { outcome: result.exitCode === 0 ? 'success' : 'failure', output };
  } catch (error) {
    if (error instanceof RuntimeError && error.code === 'timeout') {
      return {
        outcome: 'failure',
        output: `command ${JSON.stringify(command.join(' '))} timed out after ${timeoutMs / 1000}s`,
      };
    }
    throw error;
  }
}

async function checkTcp(network: ProbeNetwork, host: string, port: number, timeoutMs: number): Promise<CheckResult> {
  await network.connect(host, port, timeoutMs);
  return { outcome: 'success', output: '' };
}

async function checkHttp(target: CheckTarget, action: HTTPGetAction, timeoutMs: number): Promise<CheckResult> {
  const secure = action.scheme === 'HTTPS';
  const host = action.host || target.ip;
  const path = action.path === undefined || action.path === '' ? '/' : action.path;
  const url = new URL(
    `${secure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${portOf(action.port, target.container)}`,
  );
  const [pathname = '/', ...query] = (path.startsWith('/') ? path : `/${path}`).split('?');
  url.pathname = pathname;
  url.search = query.join('?');
  const headers: Record<string, string> = {
    'user-agent': `kube-probe/${KUBERNETES_VERSION.major}.${KUBERNETES_VERSION.minor}`,
    accept: '*/*',
    connection: 'close',
  };
  for (const header of action.httpHeaders ?? []) headers[header.name.toLowerCase()] = header.value;
  const signal = AbortSignal.timeout(timeoutMs);
  let current = url;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    const answer = await target.network.httpGet(current, headers, signal);
    if (answer.code >= 300 && answer.code < 400 && answer.location !== undefined) {
      const next = new URL(answer.location, current);
      if (next.hostname !== url.hostname) {
        const output = `Probe terminated redirects, Response body: ${answer.body}`;
        return { outcome: 'success', output, warning: true };
      }
      current = next;
      continue;
    }
    return answer.code >= 200 && answer.code < 400
      ? { outcome: 'success', output: answer.body }
      : { outcome: 'failure', output: `HTTP probe failed with statuscode: ${answer.code}` };
  }
  return { outcome: 'failure', output: `stopped after ${MAX_REDIRECTS} redirects` };
}

async function checkGrpc(target: CheckTarget, port: number, service: string, timeoutMs: number): Promise<CheckResult> {
  const status = await target.network.grpcHealth(target.ip, port, service, timeoutMs);
  return status === 'SERVING'
    ? { outcome: 'success', output: 'service healthy' }
    : { outcome: 'failure', output: `service unhealthy (responded with ${JSON.stringify(status)})` };
}
