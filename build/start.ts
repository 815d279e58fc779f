/**
 * `npm start [-- --once] [-- --root DIR]` runs an appliance on this host with the sample workload. It installs missing
 * programs, builds the executable if a source is newer, runs it below `./.hyperedge`, imports the sample image, applies
 * `examples/hello.yaml` and checks that the service responds. Ctrl-C stops it. With `--once` it verifies each step,
 * cleans up and exits with 0, or prints the failure and exits with 1.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { writeHelloImage } from './hello-image.ts';
import { ensurePrograms, SAMPLE_PROGRAMS } from './host-packages.ts';
import { podLevels, removeNewPodLevels } from './pod-levels.ts';
import { notReady } from './workload-state.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '..');
const executable = join(project, 'dist', `hyperedge-linux-${process.arch}`);

const { values: flags } = parseArgs({
  options: { once: { type: 'boolean', default: false }, root: { type: 'string', default: '.hyperedge' } },
});
const root = resolve(project, flags.root);
const rootIsNew = !existsSync(root);
const kubeconfig = join(root, 'etc/origin/master/admin.kubeconfig');
const scratch = await mkdtemp(join(tmpdir(), 'hyperedge-start-'));

let host: ChildProcess | undefined;
let ended: Promise<number> = Promise.resolve(0);
let interrupted = false;

const say = (line: string): void => console.log(line);
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

// On Ctrl-C, the terminal also signals the host process, so this process only waits for its exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    interrupted = true;
    if (signal === 'SIGTERM') host?.kill('SIGTERM');
  });

async function kubectl(...args: string[]): Promise<string> {
  const { stdout } = await run('kubectl', args, { env: { ...process.env, KUBECONFIG: kubeconfig } });
  return stdout;
}

/** Retries until `attempt` succeeds. After `seconds`, throws an error with the last failure. */
async function within<T>(what: string, seconds: number, attempt: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (host?.exitCode !== null) throw new Error(`${what}: hyperedge run has ended with exit code ${host?.exitCode}`);
      if (interrupted) throw new Error('interrupted');
      if (performance.now() > deadline)
        throw new Error(`${what}: not within ${seconds} s: ${firstLine(error)}`, { cause: error });
      await pause(200);
    }
  }
}

function firstLine(error: unknown): string {
  const text = (error as { stderr?: string }).stderr || (error instanceof Error ? error.message : String(error));
  return text.trim().split('\n')[0] ?? '';
}

function fetchText(url: string): Promise<string> {
  return new Promise((done, fail) => {
    const request = get(url, { timeout: 2000 }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        response.statusCode === 200 ? done(text) : fail(new Error(`HTTP ${response.statusCode}`)),
      );
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', fail);
  });
}

/**
 * Waits for the deployment of the sample. Resolves with the reasons if the deployment is not ready in time. `rollout
 * status` is not used: it would fail at once if an earlier start exceeded the progress deadline.
 */
async function rollOut(seconds: number): Promise<string[]> {
  let problems: string[] = [];
  try {
    await within('rollout', seconds, async () => {
      const [deployment, pods] = await Promise.all(
        ['deployment/hello', 'pods'].map(async (what) =>
          JSON.parse(await kubectl('-n', 'hello', 'get', what, '-o', 'json')),
        ),
      );
      problems = notReady(deployment, pods.items);
      if (problems.length > 0) throw new NotReadyError(problems[0]);
    });
    return [];
  } catch (error) {
    if ((error as Error).cause instanceof NotReadyError) return problems;
    throw error;
  }
}

class NotReadyError extends Error {}

async function sample(): Promise<void> {
  await within('node Ready', 180, async () => {
    const ready = await kubectl(
      'get',
      'nodes',
      '-o',
      'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}',
    );
    if (ready !== 'True') throw new Error('the node is not Ready yet');
  });
  const archive = join(scratch, 'hello.tar');
  await writeHelloImage(archive);
  await run(executable, ['image', 'import', '--root', root, archive]);
  say('sample image imported');
  await within('apply', 120, () => kubectl('apply', '-f', join(project, 'examples/hello.yaml')));
  say('examples/hello.yaml applied');
  const problems = await rollOut(90);
  if (problems.length > 0) {
    if (flags.once) throw new Error(problems.join('; '));
    say(`the sample is not ready after 90 s; hyperedge runs, and the sample is tried further:`);
    for (const problem of problems) say(`  ${problem}`);
    return;
  }
  say('deployment/hello rolled out: 2 of 2 replicas ready');
  const address = await kubectl('-n', 'hello', 'get', 'service', 'hello', '-o', 'jsonpath={.spec.clusterIP}');
  const answer = await within('service answer', 60, () => fetchText(`http://${address}/`));
  say(`the service answers on its cluster IP http://${address}/: ${answer.trim()}`);
}

async function main(): Promise<number> {
  await ensurePrograms(SAMPLE_PROGRAMS, say);
  if (process.getuid?.() !== 0) throw new Error('run as root: pods need cgroups, namespaces and mounts');
  await run(process.execPath, [join(project, 'build/package.ts'), '--if-stale'], { maxBuffer: 16 * 1024 * 1024 });
  const child = spawn(executable, ['run', '--root', root], { stdio: 'inherit' });
  host = child;
  ended = new Promise((done) => {
    child.on('error', () => done(1));
    child.on('exit', (code) => done(code ?? 1));
  });
  try {
    await sample();
    if (!flags.once) {
      say(
        `\nexport KUBECONFIG=${kubeconfig}\nkubectl -n hello get all -o wide\nCtrl-C stops everything; starting again finds it as it was.`,
      );
      return await ended;
    }
    await kubectl('delete', 'namespace', 'hello', '--timeout=120s');
    say('sample deleted');
    return 0;
  } catch (error) {
    if (interrupted) return await ended;
    console.error(`hyperedge: ${firstLine(error)}`);
    return 1;
  } finally {
    if (child.exitCode === null) child.kill('SIGTERM');
    await ended;
  }
}

try {
  const levels = await podLevels();
  const code = await main();
  if (flags.once) await removeNewPodLevels(levels);
  if (flags.once && rootIsNew) await rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  if (flags.once && code === 0) say('stopped and cleaned up; every step worked');
  process.exitCode = code;
} catch (error) {
  console.error(`hyperedge: ${firstLine(error)}`);
  process.exitCode = 1;
} finally {
  await rm(scratch, { recursive: true, force: true });
}
