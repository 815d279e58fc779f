/** One attempt of a probe. Source: pkg/probe/{exec,http,tcp,grpc}. */
import { request as httpRequest } from 'node:http';
import { constants, connect as http2Connect } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { connect as tcpConnect } from 'node:net';
import type { Container, HTTPGetAction, Probe } from 'kubernetes-types/core/v1';
import { messageOf } from '../../../base/errors.ts';
import { KUBERNETES_VERSION } from '../../../base/version.ts';
import { type Runtime, RuntimeError } from '../../../core/podplan/port.ts';
import type { ProbeOutcome } from '../../../core/podplan/probe.ts';

export interface CheckResult {
  readonly outcome: ProbeOutcome;
  readonly output: string;
}

export interface CheckTarget {
  readonly runtime: Runtime;
  readonly container: Container;
  readonly containerId: string;
  /** Address of the pod, or of the node for host-network pods. */
  readonly ip: string;
}

const MAX_OUTPUT = 10 * 1024;
const MAX_REDIRECTS = 10;

/** Never rejects: whatever goes wrong is a failure. */
export async function check(probe: Probe, target: CheckTarget, timeoutMs: number): Promise<CheckResult> {
  try {
    if (probe.exec !== undefined) return await checkExec(target, probe.exec.command ?? [], timeoutMs);
    if (probe.httpGet !== undefined) return await checkHttp(target, probe.httpGet, timeoutMs);
    if (probe.tcpSocket !== undefined) {
      const port = portOf(probe.tcpSocket.port, target.container);
      return await checkTcp(probe.tcpSocket.host || target.ip, port, timeoutMs);
    }
    if (probe.grpc !== undefined) {
      return await checkGrpc(target.ip, probe.grpc.port, probe.grpc.service ?? '', timeoutMs);
    }
    return { outcome: 'failure', output: `missing probe handler for ${target.container.name}` };
  } catch (error) {
    return { outcome: 'failure', output: messageOf(error) };
  }
}

/** A number or the name of one of the container's ports. Throws when there is no such port. */
export function portOf(port: number | string, container: Container): number {
  const number = typeof port === 'number' ? port : /^\d+$/.test(port) ? Number(port) : undefined;
  const found = number ?? container.ports?.find((each) => each.name === port)?.containerPort;
  if (found === undefined) throw new Error(`couldn't find port: ${JSON.stringify(port)}`);
  if (found < 1 || found > 65535) throw new Error(`invalid port number: ${found}`);
  return found;
}

async function checkExec(target: CheckTarget, command: readonly string[], timeoutMs: number): Promise<CheckResult> {
  try {
    const options = { timeoutMs, maxOutputBytes: MAX_OUTPUT };
    const result = await target.runtime.execSync(target.containerId, command, options);
    const output = Buffer.concat([result.stdout, result.stderr]).subarray(0, MAX_OUTPUT).toString('utf8');
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

function checkTcp(host: string, port: number, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    const socket = tcpConnect({ host, port });
    const finish = (outcome: ProbeOutcome, output: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ outcome, output });
    };
    const timer = setTimeout(() => finish('failure', `dial tcp ${host}:${port}: i/o timeout`), timeoutMs);
    socket.once('connect', () => finish('success', ''));
    socket.once('error', (error) => finish('failure', `dial tcp ${host}:${port}: ${error.message}`));
  });
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
    const answer = await httpGet(current, headers, signal);
    if (answer.code >= 300 && answer.code < 400 && answer.location !== undefined) {
      const next = new URL(answer.location, current);
      if (next.hostname !== url.hostname) {
        return { outcome: 'success', output: `Probe terminated redirects, Response body: ${answer.body}` };
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

export interface HttpAnswer {
  readonly code: number;
  readonly location: string | undefined;
  readonly body: string;
}

/** GET with a connection of its own; a server certificate is not verified, as it is the pod's own matter. */
export function httpGet(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const options = { headers, signal, agent: false as const };
    const request =
      url.protocol === 'https:'
        ? httpsRequest(url, { ...options, rejectUnauthorized: false })
        : httpRequest(url, options);
    request.once('error', (error) =>
      reject(
        new Error(
          signal.aborted
            ? `Get ${JSON.stringify(url.href)}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)`
            : `Get ${JSON.stringify(url.href)}: ${error.message}`,
          { cause: error },
        ),
      ),
    );
    request.once('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        if (body.length < MAX_OUTPUT) body += chunk;
        else response.destroy();
      });
      response.once('error', reject);
      response.once('close', () =>
        resolve({
          code: response.statusCode ?? 0,
          location: response.headers.location,
          body: body.slice(0, MAX_OUTPUT),
        }),
      );
    });
    request.end();
  });
}

const SERVING = 1;

/** grpc.health.v1.Health/Check in plain HTTP/2. Source: grpc/grpc doc/health-checking.md. */
function checkGrpc(ip: string, port: number, service: string, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    const authority = `${ip.includes(':') ? `[${ip}]` : ip}:${port}`;
    const session = http2Connect(`http://${authority}`);
    const finish = (outcome: ProbeOutcome, output: string): void => {
      clearTimeout(timer);
      session.destroy();
      resolve({ outcome, output });
    };
    const timer = setTimeout(
      () =>
        finish(
          'failure',
          `timeout: failed to connect service ${JSON.stringify(authority)} within ${timeoutMs / 1000}s`,
        ),
      timeoutMs,
    );
    session.once('error', (error) => finish('failure', `failed to connect to ${authority}: ${error.message}`));
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const chunks: Buffer[] = [];
    let size = 0;
    let status: string | undefined;
    stream.on('response', (headers) => {
      status = textOf(headers['grpc-status']);
    });
    stream.on('trailers', (headers) => {
      status = textOf(headers['grpc-status']);
    });
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_OUTPUT) chunks.push(chunk);
      else finish('failure', `health rpc answered with more than ${MAX_OUTPUT} bytes`);
    });
    stream.once('error', (error) => finish('failure', error.message));
    stream.once('end', () => {
      if (status !== undefined && status !== '0') finish('failure', `health rpc failed with status ${status}`);
      else {
        const serving = servingStatus(Buffer.concat(chunks));
        if (serving === SERVING) finish('success', 'service healthy');
        else
          finish('failure', `service unhealthy (responded with ${JSON.stringify(STATUS_NAMES[serving] ?? serving)})`);
      }
    });
    const name = Buffer.from(service, 'utf8').subarray(0, 127);
    const message = name.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
    const frame = Buffer.alloc(5 + message.length);
    frame.writeUInt32BE(message.length, 1);
    message.copy(frame, 5);
    stream.end(frame);
  });
}

const STATUS_NAMES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

/** Field 1 of HealthCheckResponse; an absent field is UNKNOWN. */
function servingStatus(frame: Buffer): number {
  return frame.length >= 7 && frame[5] === 0x08 ? (frame[6] ?? 0) : 0;
}

function textOf(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0];
}
