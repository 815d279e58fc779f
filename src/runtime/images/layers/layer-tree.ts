/**
 * Directories of a layer by descriptor. Each is opened relative to its parent without following a link, so a name never
 * leads out of the layer, whatever the archive contains.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** Linux O_PATH, which is missing in Node's constants. */
const O_PATH = 0o10000000;
const DIRECTORY = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const ENTRY = O_PATH | constants.O_NOFOLLOW;
const MOST_OPEN = 64;

/** Path of the file behind a descriptor, for Node functions that take only paths. */
export const pathOf = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`;

export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
export const joinLayerPath = (directory: string, name: string): string =>
  directory === '' ? name : `${directory}/${name}`;

export class LayerTree {
  /** Open directories by path, least recently used first. */
  readonly #open: Map<string, FileHandle>;

  private constructor(root: FileHandle) {
    this.#open = new Map([['', root]]);
  }

  static async open(root: string): Promise<LayerTree> {
    return new LayerTree(await open(root, DIRECTORY));
  }

  /**
   * Opens a directory, '' for the root; `path` must not contain `.` or `..`. The handle belongs to the tree and stays
   * open for at least the next 60 calls. Rejects with ENOENT, ENOTDIR or ELOOP.
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

  /**
   * Path of an entry for system calls that do not follow its last component. The directory part is an open descriptor.
   */
  async at(path: string): Promise<string> {
    return `${pathOf(await this.directory(parentOf(path)))}/${nameOf(path)}`;
  }

  /** An O_PATH descriptor of an entry itself, also if it is a link. The caller must close it. */
  async entry(path: string): Promise<FileHandle> {
    return open(await this.at(path), ENTRY);
  }

  /** Closes a directory and all directories below it. Must be called after the directory was removed. */
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
