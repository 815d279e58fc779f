/** A file system that never responds: FUSE without a daemon. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';

export class HungFileSystem {
  readonly path: string;
  readonly #holder: ChildProcess;

  private constructor(path: string, holder: ChildProcess) {
    this.path = path;
    this.#holder = holder;
  }

  /** Mounts the file system on a new directory. */
  static async mount(path: string): Promise<HungFileSystem> {
    mkdirSync(path, { recursive: true });
    const options = 'fd=9,rootmode=40000,user_id=0,group_id=0,allow_other';
    const script = `exec 9<>/dev/fuse && mount -i -n --no-canonicalize -t fuse -o ${options} hung "$1" && echo mounted && exec sleep 1000`;
    const holder = spawn('sh', ['-c', script, 'sh', path], { stdio: ['ignore', 'pipe', 'inherit'] });
    if (holder.stdout === null) throw new Error('the holder has no output');
    await Promise.race([
      once(holder.stdout, 'data'),
      once(holder, 'exit').then(() => Promise.reject(new Error('FUSE cannot be mounted'))),
    ]);
    return new HungFileSystem(path, holder);
  }

  /** Aborts all waiting operations and unmounts the file system. */
  async release(): Promise<void> {
    const gone = once(this.#holder, 'exit');
    this.#holder.kill('SIGKILL');
    await gone;
    spawnSync('umount', ['--no-canonicalize', '--lazy', this.path], { stdio: 'ignore' });
  }
}
