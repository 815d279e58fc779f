/**
 * An API server in its own process that measures the CPU time of its event loop between two timer turns, without
 * garbage collection. For scale, it also measures one pass over a document of known size.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { startServer } from '../../harness.ts';

const server = await startServer();
const windows: { readonly from: number; readonly to: number; readonly cpuMs: number }[] = [];
const pauses: { readonly from: number; readonly to: number }[] = [];

new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) pauses.push({ from: startTime, to: startTime + duration });
}).observe({ entryTypes: ['gc'] });

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let before = { at: performance.now(), cpuMs: cpuMs() };
setInterval(() => {
  const now = { at: performance.now(), cpuMs: cpuMs() };
  windows.push({ from: before.at, to: now.at, cpuMs: now.cpuMs - before.cpuMs });
  before = now;
}, 1);

/** Encodes and parses a map with this number of fields. */
const FIELDS = 150_000;
const text = JSON.stringify(Object.fromEntries(Array.from({ length: FIELDS }, (_, n) => [`key-${n}`, 'v'])));
function pass(): number {
  const began = cpuMs();
  JSON.stringify(JSON.parse(text));
  return cpuMs() - began;
}

function longest(): number {
  const spent = windows.splice(0).map(({ from, to, cpuMs: all }) => {
    const paused = pauses.reduce(
      (sum, each) => sum + Math.max(0, Math.min(each.to, to) - Math.max(each.from, from)),
      0,
    );
    return all - paused;
  });
  pauses.splice(0);
  return Math.max(0, ...spent);
}

process.on('message', (question) => {
  // Wait, because performance entries of garbage collections are delivered one turn later.
  setTimeout(() => {
    if (question === 'stop') void server.stop().then(() => process.exit(0));
    else if (question === 'pass') process.send?.(Math.min(pass(), pass()));
    else process.send?.(longest());
  }, 20);
});
process.on('disconnect', () => process.exit(1));
process.send?.({ port: server.port, ca: server.ca, admin: server.admin });
