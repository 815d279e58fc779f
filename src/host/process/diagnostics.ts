/**
 * Statistics of a process for support bundles: heap, event loop and open resources. Each process of a host has its own
 * Unix socket in a private directory and works without the API server. Statistics are collected only for a request. If
 * V8 ends the process with a fatal error, such as an exhausted heap, Node writes a report.
 */
import { existsSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';

const SAMPLE_MS = 1000;
const RESOLUTION_MS = 10;
const MAX_DUMP_BYTES = 4 << 20;
export const DUMP_SUFFIX = '.sock';
/** Maximum length of a Unix socket's path in bytes. Source: unix(7). */
const MAX_SOCKET_PATH = 107;

export interface ProcessDump {
  readonly component: string;
  readonly pid: number;
  readonly version: string;
  readonly node: string;
  readonly uptimeSeconds: number;
  readonly memory: NodeJS.MemoryUsage;
  readonly usage: NodeJS.ResourceUsage;
  readonly heap: ReturnType<typeof getHeapStatistics>;
  readonly heapSpaces: ReturnType<typeof getHeapSpaceStatistics>;
  readonly eventLoop: {
    readonly sampleMs: number;
    /** Share of time since the start in which the event loop was busy. */
    readonly utilization: number;
    readonly sampledUtilization: number;
    readonly delayMs: Readonly<Record<'min' | 'mean' | 'p50' | 'p99' | 'max', number>>;
  };
  /** Number of open handles and requests by type. */
  readonly resources: Readonly<Record<string, number>>;
}

/** Directory of the sockets and of the reports about fatal errors. */
export const diagnosticsBelow = (root: string): string => join(root, 'var/lib/origin/diagnostics');

/** Collects the statistics. The event loop is sampled for a second. */
export async function dumpProcess(component: string): Promise<ProcessDump> {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const before = performance.eventLoopUtilization();
  delay.enable();
  await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
  delay.disable();
  // Subtracts the timer interval, because the histogram contains the interval plus the delay.
  const late = (nanoseconds: number): number => Math.max(0, Math.round(nanoseconds / 1e4) / 100 - RESOLUTION_MS);
  const resources: Record<string, number> = {};
  for (const type of process.getActiveResourcesInfo()) resources[type] = (resources[type] ?? 0) + 1;
  return {
    component,
    pid: process.pid,
    version: PRODUCT_VERSION,
    node: process.version,
    uptimeSeconds: Math.round(process.uptime()),
    memory: process.memoryUsage(),
    usage: process.resourceUsage(),
    heap: getHeapStatistics(),
    heapSpaces: getHeapSpaceStatistics(),
    eventLoop: {
      sampleMs: SAMPLE_MS,
      utilization: performance.eventLoopUtilization().utilization,
      sampledUtilization: performance.eventLoopUtilization(before).utilization,
      delayMs: {
        min: late(delay.min),
        mean: late(delay.mean),
        p50: late(delay.percentile(50)),
        p99: late(delay.percentile(99)),
        max: late(delay.max),
      },
    },
    resources,
  };
}

/** Serves the statistics. Without the directory, nothing is served: the component runs outside of a host. */
export async function serveDiagnostics(directory: string, component: string, log: Log): Promise<{ stop(): void }> {
  if (!existsSync(directory)) return { stop: () => {} };
  reportFatalErrors(directory, component);
  const socket = join(directory, `${component}${DUMP_SUFFIX}`);
  if (Buffer.byteLength(socket) > MAX_SOCKET_PATH) return { stop: () => {} };
  let running: Promise<ProcessDump> | undefined;
  const server = createServer({ requestTimeout: 5000, maxHeaderSize: 4096 }, (_incoming, response) => {
    // Simultaneous requests share one sample.
    running ??= dumpProcess(component).finally(() => {
      running = undefined;
    });
    running.then(
      (dump) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(dump)),
      (error: unknown) => response.writeHead(500).end(messageOf(error)),
    );
  });
  server.maxConnections = 4;
  server.on('error', (error) => log.warn('diagnostics socket failed', { socket, error: error.message }));
  server.unref();
  try {
    await rm(socket, { force: true });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socket, resolve));
    await chmod(socket, 0o600);
  } catch (error) {
    log.warn('diagnostics not served', { socket, error: messageOf(error) });
  }
  return {
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Makes Node write a report when V8 ends the process. It replaces the report of an earlier error. Environment variables
 * and network addresses are omitted.
 */
function reportFatalErrors(directory: string, component: string): void {
  const settings = { directory, filename: `fatal-${component}.json`, excludeEnv: true, excludeNetwork: true };
  Object.assign(process.report, { ...settings, reportOnFatalError: true });
}

/**
 * Requests the statistics of a process. Throws CodedError 'failed' if the process does not answer, for example because
 * its event loop is blocked.
 */
export function requestDump(socket: string, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => reject(new CodedError('failed', `${socket}: ${messageOf(error)}`));
    const outgoing = request({ socketPath: socket, path: '/', signal }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (text.length > MAX_DUMP_BYTES) response.destroy(new Error('the answer is too large'));
      });
      response.on('error', fail);
      response.on('end', () => {
        try {
          resolve(JSON.parse(text));
        } catch (error) {
          fail(error);
        }
      });
    });
    outgoing.on('error', fail);
    outgoing.end();
  });
}
