/** Runs `ip` and `nft`, in the network namespace that stands for the host: the process's own, or one given by its file. */
import { spawn } from 'node:child_process';
import { RuntimeError } from '../../core/podplan/port.ts';

const TIMEOUT_MS = 20_000;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface NetCommands {
  /** Runs lines of `ip` commands in one process, stopping at the first error. */
  ip(lines: readonly string[], netns?: string): Promise<void>;
  /** One `ip -json` query. */
  ipJson(args: readonly string[]): Promise<unknown>;
  /** Applies a ruleset in one transaction. */
  nft(ruleset: string): Promise<void>;
  /** Writes below /proc/sys of the namespace. */
  sysctl(name: string, value: string): Promise<void>;
}

/** All reject with RuntimeError 'network' in the program's own words; `missing` is set when the program is not installed. */
export function createNetCommands(hostNetns: string | undefined): NetCommands {
  const run = (file: string, args: readonly string[], input: string | undefined, netns = hostNetns): Promise<string> =>
    netns === undefined
      ? execute(file, args, input)
      : execute('nsenter', [`--net=${netns}`, '--', file, ...args], input);
  return {
    async ip(lines, netns) {
      await run('ip', ['-batch', '-'], `${lines.join('\n')}\n`, netns);
    },
    async ipJson(args) {
      const text = await run('ip', ['-json', ...args], undefined);
      return text.trim() === '' ? [] : JSON.parse(text);
    },
    async nft(ruleset) {
      await run('nft', ['-f', '-'], ruleset);
    },
    async sysctl(name, value) {
      // The files below /proc/sys/net show the namespace of whoever opens them.
      await run('tee', [`/proc/sys/${name}`], value);
    },
  };
}

function execute(file: string, args: readonly string[], input: string | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      env: { PATH, LANG: 'C.UTF-8' },
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (part: Buffer) => {
      stdout += part.toString('utf8');
    });
    child.stderr?.on('data', (part: Buffer) => {
      if (stderr.length < 64 * 1024) stderr += part.toString('utf8');
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
    child.on('error', (error) => reject(new RuntimeError('network', `${file}: ${error.message}`, { cause: error })));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(stdout);
      else reject(new RuntimeError('network', `${file}: ${stderr.trim() || (signal ?? `exit status ${code}`)}`));
    });
  });
}
