/**
 * A simulated disk for power failures: directory entries and file contents are durable only after a flush. A power
 * failure keeps any subset of the rest. A rename is one atomic change of its directory.
 */
import { basename, dirname } from 'node:path';
import type { Owner } from '../../../../src/openshift/machine-config/core/host-files/port.ts';
import type { Disk, Stat } from '../../../../src/openshift/machine-config/io/disk.ts';

interface Inode {
  kind: 'file' | 'link' | 'directory';
  bytes: Uint8Array;
  owner: Owner;
  target: string;
  names: Map<string, Inode>;
  /** Entries on disk, and later changes in order. */
  durable: Map<string, Inode>;
  pending: Map<string, Inode | undefined>[];
}

const inode = (kind: Inode['kind'], owner: Owner): Inode => ({
  kind,
  bytes: new Uint8Array(),
  owner,
  target: '',
  names: new Map(),
  durable: new Map(),
  pending: [],
});
const ROOT: Owner = { mode: 0o755, uid: 0, gid: 0 };

export class PowerCut extends Error {}

export class SimulatedDisk implements Disk {
  readonly #root = inode('directory', ROOT);
  /** Number of operations until the power fails, or until an operation fails. */
  cutAfter = Number.POSITIVE_INFINITY;
  failAfter = Number.POSITIVE_INFINITY;
  /** Bytes that may still be written. */
  space = Number.POSITIVE_INFINITY;
  operations = 0;
  /** Whether the file system supports hard links, unlike a FAT boot partition. */
  hardLinks = true;
  #off = false;

  async stat(path: string): Promise<Stat | undefined> {
    const found = this.#find(path);
    if (found === undefined) return undefined;
    return { kind: found.kind, ...found.owner, size: found.bytes.length, target: found.target };
  }

  async read(path: string): Promise<Uint8Array> {
    return this.#expect(path).bytes;
  }

  async write(path: string, bytes: Uint8Array, owner: Owner): Promise<void> {
    this.#step();
    if (this.#find(path) !== undefined) throw errno('EEXIST');
    if (bytes.length > this.space) throw errno('ENOSPC');
    this.space -= bytes.length;
    const made = inode('file', owner);
    made.bytes = bytes;
    this.#change(path, made);
  }

  async symlink(path: string, target: string): Promise<void> {
    this.#step();
    if (this.#find(path) !== undefined) throw errno('EEXIST');
    const made = inode('link', { mode: 0o777, uid: 0, gid: 0 });
    made.target = target;
    this.#change(path, made);
  }

  async keep(path: string, as: string): Promise<void> {
    const found = this.#expect(path);
    if (!this.hardLinks) return this.write(as, found.bytes, found.owner);
    this.#step();
    this.#change(as, found);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#step();
    const moved = this.#expect(from);
    // rename(2) does nothing if both names belong to one file.
    if (this.#find(to) === moved) return;
    const change = new Map<string, Inode | undefined>([
      [basename(from), undefined],
      [basename(to), moved],
    ]);
    this.#apply(this.#directory(dirname(from)), change);
  }

  async remove(path: string): Promise<void> {
    this.#step();
    if (this.#find(path) !== undefined) this.#change(path, undefined);
  }

  async makeDirectory(path: string, owner: Owner): Promise<void> {
    this.#step();
    this.#change(path, inode('directory', owner));
  }

  async removeDirectory(path: string): Promise<boolean> {
    this.#step();
    const found = this.#find(path);
    if (found === undefined || found.names.size > 0) return false;
    this.#change(path, undefined);
    return true;
  }

  async list(path: string): Promise<readonly string[]> {
    return [...this.#directory(path).names.keys()];
  }

  async sync(directory: string): Promise<void> {
    this.#step();
    const found = this.#directory(directory);
    for (const change of found.pending) for (const [name, to] of change) put(found.durable, name, to);
    found.pending = [];
  }

  /** Restores power: any subset of the unflushed changes is lost. */
  powerOn(random: () => number): void {
    const visit = (directory: Inode): void => {
      for (const change of directory.pending)
        if (random() < 0.5) for (const [name, to] of change) put(directory.durable, name, to);
      directory.pending = [];
      directory.names = new Map(directory.durable);
      for (const child of directory.names.values()) if (child.kind === 'directory') visit(child);
    };
    visit(this.#root);
    this.#off = false;
    this.cutAfter = Number.POSITIVE_INFINITY;
    this.failAfter = Number.POSITIVE_INFINITY;
    this.operations = 0;
  }

  /** All files and links with contents and owners, by path; directories only by path. */
  snapshot(): Map<string, string> {
    const all = new Map<string, string>();
    const visit = (directory: Inode, path: string): void => {
      for (const [name, child] of directory.names) {
        const at = `${path}/${name}`;
        const { mode, uid, gid } = child.owner;
        if (child.kind === 'directory') visit(child, at);
        const what = child.kind === 'file' ? new TextDecoder().decode(child.bytes) : child.target;
        all.set(at, `${child.kind} ${mode} ${uid}:${gid} ${what}`);
      }
    };
    visit(this.#root, '');
    return all;
  }

  #step(): void {
    if (this.#off) throw new PowerCut();
    this.operations += 1;
    if (this.operations > this.cutAfter) {
      this.#off = true;
      throw new PowerCut();
    }
    if (this.operations > this.failAfter) {
      this.failAfter = Number.POSITIVE_INFINITY;
      throw errno('EIO');
    }
  }

  #directory(path: string): Inode {
    let at = this.#root;
    for (const name of path.split('/').filter((part) => part !== '')) {
      const next = at.names.get(name);
      if (next === undefined) throw errno('ENOENT');
      if (next.kind !== 'directory') throw errno('ENOTDIR');
      at = next;
    }
    return at;
  }

  #find(path: string): Inode | undefined {
    if (this.#off) throw new PowerCut();
    try {
      return path === '/' ? this.#root : this.#directory(dirname(path)).names.get(basename(path));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  #expect(path: string): Inode {
    const found = this.#find(path);
    if (found === undefined) throw errno('ENOENT');
    return found;
  }

  #change(path: string, to: Inode | undefined): void {
    this.#apply(this.#directory(dirname(path)), new Map([[basename(path), to]]));
  }

  #apply(directory: Inode, change: Map<string, Inode | undefined>): void {
    for (const [name, to] of change) put(directory.names, name, to);
    directory.pending.push(change);
  }
}

function put(names: Map<string, Inode>, name: string, to: Inode | undefined): void {
  if (to === undefined) names.delete(name);
  else names.set(name, to);
}

const errno = (code: string): Error => Object.assign(new Error(code), { code });
