/**
 * Directories of a layer by descriptor. Each is opened relative to the one above it without following a link, so a name
 * never leads out of the layer, whatever an archive has put there.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** Linux' O_PATH, which Node does not name. */
const O_PATH = 0o10000000;
const DIRECTORY = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const ENTRY = O_PATH | constants.O_NOFOLLOW;
const MOST_OPEN = 64;

/** Path of what a descriptor refers to, for calls that Node offers for paths only. */
export const pathOf = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`;

export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
export const join = (directory: string, name: string): string => (directory === '' ? name : `${directory}/${name}`);

export class LayerTree {
  /** Open directories by path, the least recently used first. */
  readonly #open: Map<string, FileHandle>;

  private constructor(root: FileHandle) {
    this.#open = new Map([['', root]]);
  }

  static async open(root: string): Promise<LayerTree> {
    return new LayerTree(await open(root, DIRECTORY));
  }

  /**
   * A directory, '' for the root; `path` has no `.` or `..`. The handle stays open for the next 60 calls at least and
   * belongs to the tree. Rejects with ENOENT, ENOTDIR or ELOOP.
   */
  async directory(path: string): Promise<FileHandle> {
    const known = this.#open.get(path);
    if (known !== undefined) {
      if (path !== '') {
        this.#open.delete(path);
        this.#open.set(path, known);
      }
      return known;
    }
    const opened = await open(`${pathOf(await this.directory(parentOf(path)))}/${nameOf(path)}`, DIRECTORY);
    this.#open.set(path, opened);
    if (this.#open.size > MOST_OPEN) {
      const [oldest] = [...this.#open.keys()].filter((each) => each !== '');
      if (oldest !== undefined) await this.#close(oldest);
    }
    return opened;
  }

  /** A path for system calls that do not follow its last name: the directory is the opened one. */
  async at(path: string): Promise<string> {
    return `${pathOf(await this.directory(parentOf(path)))}/${nameOf(path)}`;
  }

  /** An O_PATH descriptor of an entry itself, a link included. The caller closes it. */
  async entry(path: string): Promise<FileHandle> {
    return open(await this.at(path), ENTRY);
  }

  /** After a directory was removed, for it and everything that was below. */
  async forget(path: string): Promise<void> {
    const gone = [...this.#open.keys()].filter((each) => each === path || each.startsWith(`${path}/`));
    for (const each of gone) await this.#close(each);
  }

  async close(): Promise<void> {
    for (const each of [...this.#open.keys()]) await this.#close(each);
  }

  async #close(path: string): Promise<void> {
    const handle = this.#open.get(path);
    this.#open.delete(path);
    await handle?.close();
  }
}
