/**
 * Makes test files wait until `nextFile` admits them. Runners start more files than may run; each loads
 * `gate-client.ts`, connects here and continues when it is admitted. Its place becomes free when the process ends.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Candidate, nextFile } from './admission.ts';
import { type Cost, coresOf } from './costs.ts';

const CHECK_MS = 100;
/** Interval between two starts. A started file loads its sources before its load can be measured. */
const SPACING_MS = 250;
/** Maximum number of files that run at once, most of which wait for timers. */
const FILES_AT_ONCE = 4 * availableParallelism();

/** Weight of the newest interval in the average of about a second. */
const SMOOTHING = 0.15;

interface Visitor extends Candidate {
  readonly file: string;
  readonly socket: Socket;
}

export class Gate {
  readonly #server: Server;
  readonly #directory: string;
  readonly #costOf: (file: string) => Cost;
  readonly #locksOf: (file: string) => readonly string[];
  readonly #waiting = new Set<Visitor>();
  readonly #running = new Set<Visitor>();
  readonly #admitted = new Set<string>();
  /** Source of each bundled test file. */
  readonly #sources = new Map<string, string>();
  readonly #timer: NodeJS.Timeout;
  #lastAdmittedMs = 0;
  #times = processorTimes();
  #busy = 0;

  private constructor(directory: string, costOf: (file: string) => Cost, locksOf: (file: string) => readonly string[]) {
    this.#directory = directory;
    this.#costOf = costOf;
    this.#locksOf = locksOf;
    this.#server = createServer((socket) => this.#visit(socket));
    this.#timer = setInterval(() => this.#check(), CHECK_MS);
  }

  /** Opens the gate for test files that this process starts, and for those of its children. */
  static async open(costOf: (file: string) => Cost, locksOf: (file: string) => readonly string[]): Promise<Gate> {
    const gate = new Gate(await mkdtemp(join(tmpdir(), 'he-tests-')), costOf, locksOf);
    const path = join(gate.#directory, 'gate');
    await new Promise<void>((listening) => gate.#server.listen(path, () => listening()));
    process.env['HYPEREDGE_TEST_GATE'] = path;
    return gate;
  }

  /** Registers bundled test files, which count as their sources. */
  addBundles(sources: ReadonlyMap<string, string>): void {
    for (const [bundled, source] of sources) this.#sources.set(bundled, source);
  }

  sourceOf(file: string): string {
    return this.#sources.get(file) ?? file;
  }

  /** Whether the file has been admitted; before that, its time limit does not apply. */
  readonly isAdmitted = (file: string): boolean => this.#admitted.has(this.sourceOf(file));

  /** CPU seconds of each file that has exited, with the children that it waited for. */
  async cpuSeconds(): Promise<ReadonlyMap<string, number>> {
    const text = await readFile(join(this.#directory, 'gate.usage'), 'utf8').catch(() => '');
    return new Map(
      text
        .split('\n')
        .filter((line) => line !== '')
        .map((line): [string, number] => [this.sourceOf(line.slice(line.indexOf(' ') + 1)), Number.parseFloat(line)]),
    );
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    delete process.env['HYPEREDGE_TEST_GATE'];
    await new Promise<void>((closed) => this.#server.close(() => closed()));
    await rm(this.#directory, { recursive: true, force: true });
  }

  #visit(socket: Socket): void {
    let visitor: Visitor | undefined;
    socket.setEncoding('utf8').once('data', (path: string) => {
      const file = this.sourceOf(path);
      const cost = this.#costOf(file);
      const cores = Math.min(coresOf(cost), availableParallelism());
      visitor = { file, cores, locks: this.#locksOf(file), waitsSinceMs: performance.now(), socket };
      this.#admitted.delete(file);
      this.#waiting.add(visitor);
    });
    const leave = (): void => {
      if (visitor === undefined) return;
      this.#waiting.delete(visitor);
      this.#running.delete(visitor);
    };
    socket.on('close', leave).on('error', leave);
  }

  #check(): void {
    const nowMs = performance.now();
    this.#measure();
    if (this.#waiting.size === 0 || nowMs - this.#lastAdmittedMs < SPACING_MS) return;
    const limits = { cores: availableParallelism(), filesAtOnce: FILES_AT_ONCE };
    const visitor = nextFile(this.#waiting, [...this.#running], { busy: this.#busy, nowMs }, limits);
    if (visitor === undefined) return;
    this.#waiting.delete(visitor);
    this.#running.add(visitor);
    this.#admitted.add(visitor.file);
    this.#lastAdmittedMs = nowMs;
    visitor.socket.write('go');
  }

  #measure(): void {
    const now = processorTimes();
    const total = now.total - this.#times.total;
    if (total > 0) this.#busy += SMOOTHING * ((now.busy - this.#times.busy) / total - this.#busy);
    this.#times = now;
  }
}

/** Ticks of all processors since the host started. */
function processorTimes(): { readonly busy: number; readonly total: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const ticks = line.split(/ +/).slice(1, 9).map(Number);
  const total = ticks.reduce((sum, each) => sum + each, 0);
  return { busy: total - (ticks[3] ?? 0) - (ticks[4] ?? 0), total };
}
