/**
 * Copies of catalogs on this host. Other masters read them by digest, and newer copies of other masters replace them.
 */
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, rename, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type CatalogCopy, isCatalogName, versionsText } from '../../../../api/kinds/nodes/nodes/catalog-report.ts';
import { CodedError } from '../../../../base/errors.ts';
import { contentOf, contentSize, receiveContent } from './catalog-stream.ts';
import { CatalogDigests } from './digests.ts';
import { CATALOG, filesBelow, isCatalogFile } from './tree.ts';

/** Free disk space that must remain for the store and for logs. */
const RESERVE_BYTES = 256 * 1024 * 1024;
const VERSIONS_FILE = '.versions.json';
const INCOMING = '.incoming-';
const REPLACED = '.replaced-';

export class CatalogCopies {
  readonly #directory: string;
  readonly #digests: CatalogDigests;
  #looking: Promise<Readonly<Record<string, string>>> | undefined;

  /** `directory` contains one directory per catalog. */
  constructor(directory: string) {
    this.#directory = directory;
    this.#digests = new CatalogDigests(directory);
  }

  /** Digests of all catalogs, by catalog name. Concurrent callers share one scan. */
  digests(): Promise<Readonly<Record<string, string>>> {
    this.#looking ??= this.#digests.all().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /**
   * Opens a catalog as a stream (see catalog-stream.ts); undefined if no catalog has this digest. `sha256` is in hex.
   */
  async open(
    sha256: string,
  ): Promise<{ readonly size: number; readonly content: AsyncIterable<Uint8Array> } | undefined> {
    const found = Object.entries(await this.digests()).find(([, digest]) => digest === `sha256:${sha256}`);
    if (found === undefined) return undefined;
    const files = await this.#files(found[0]);
    return { size: contentSize(files), content: contentOf(files) };
  }

  /** Reads what `writeVersions` has written; empty if it has never been called. */
  async versions(): Promise<Map<string, CatalogCopy>> {
    const text = await readFile(join(this.#directory, VERSIONS_FILE), 'utf8').catch(() => '{}');
    const versions = new Map<string, CatalogCopy>();
    for (const [name, line] of entriesOf(text)) {
      const [digest = '', version = '', ...ancestors] = line.split(' ');
      if (version !== '') versions.set(name, { digest, version, ancestors });
    }
    return versions;
  }

  async writeVersions(versions: ReadonlyMap<string, CatalogCopy>): Promise<void> {
    const lines = [...versions].map(([name, copy]) => [name, `${copy.digest} ${versionsText(copy)}`]);
    await mkdir(this.#directory, { recursive: true });
    const path = join(this.#directory, VERSIONS_FILE);
    const file = await open(`${path}.new`, 'w', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(Object.fromEntries(lines))}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
    await flush(this.#directory);
  }

  /** Completes or reverts replacements that a power failure has interrupted. Must be called before any other method. */
  async recover(): Promise<void> {
    for (const entry of await readdir(this.#directory).catch(() => [])) {
      if (entry.startsWith(INCOMING)) await this.#remove(entry);
      if (!entry.startsWith(REPLACED)) continue;
      if (await isThere(join(this.#directory, entry.slice(REPLACED.length)))) await this.#remove(entry);
      else await rename(join(this.#directory, entry), join(this.#directory, entry.slice(REPLACED.length)));
    }
  }

  /**
   * Replaces the copy whose digest is `before` by `content`. If `before` is undefined, no entry of this name may exist.
   * Throws CodedError 'full' before anything is written, 'bad-file' if the content does not match `digest`, and
   * 'changed' if the current copy differs from `before`. After an error the current copy is unchanged.
   */
  async replace(
    name: string,
    before: string | undefined,
    digest: string,
    content: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    if (!isCatalogName(name)) throw new CodedError('bad-file', `${JSON.stringify(name)}: is not a catalog name`);
    await mkdir(this.#directory, { recursive: true });
    await this.#checkSpace();
    const [incoming, replaced] = [join(this.#directory, INCOMING + name), join(this.#directory, REPLACED + name)];
    try {
      await rm(incoming, { recursive: true, force: true });
      await mkdir(incoming);
      const directories = new Set([incoming]);
      await receiveContent(content, digest.slice('sha256:'.length), {
        create: async (file) => {
          const path = join(incoming, file);
          for (let at = dirname(path); at !== incoming; at = dirname(at)) directories.add(at);
          await mkdir(dirname(path), { recursive: true });
          return open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o644);
        },
      });
      for (const directory of directories) await flush(directory);
      await this.#swap(name, before, { incoming, replaced });
    } finally {
      await rm(incoming, { recursive: true, force: true });
    }
  }

  async #swap(
    name: string,
    before: string | undefined,
    { incoming, replaced }: { readonly incoming: string; readonly replaced: string },
  ): Promise<void> {
    const target = join(this.#directory, name);
    const changed = (): CodedError => new CodedError('changed', `${target}: was changed during the copy`);
    if (before === undefined) {
      // rename(2) succeeds only if the target does not exist or is an empty directory.
      await rename(incoming, target).catch((error: unknown) => {
        throw new CodedError('changed', `${target}: is not a catalog and not empty`, { cause: error });
      });
      await flush(this.#directory);
      return;
    }
    if ((await new CatalogDigests(this.#directory).of(name)) !== before) throw changed();
    await rm(replaced, { recursive: true, force: true });
    await rename(target, replaced);
    // Compare the digest again, so that an edit between the check and the rename is not lost.
    if ((await new CatalogDigests(this.#directory).of(REPLACED + name)) !== before) {
      await rename(replaced, target);
      throw changed();
    }
    await rename(incoming, target);
    await flush(this.#directory);
    await rm(replaced, { recursive: true, force: true });
  }

  async #files(name: string) {
    return (await filesBelow([join(this.#directory, name)], '', CATALOG)).filter((each) => isCatalogFile(each.name));
  }

  #remove(entry: string): Promise<void> {
    return rm(join(this.#directory, entry), { recursive: true, force: true });
  }

  async #checkSpace(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#directory);
    if (bavail * bsize < CATALOG.maxBytes + RESERVE_BYTES) {
      const megabytes = (count: number): number => Math.ceil(count / 1e6);
      throw new CodedError(
        'full',
        `${this.#directory}: ${megabytes(bavail * bsize)} MB are free, ${megabytes(CATALOG.maxBytes + RESERVE_BYTES)} MB are needed`,
      );
    }
  }
}

function entriesOf(text: string): [string, string][] {
  try {
    return Object.entries(JSON.parse(text)).filter((each): each is [string, string] => typeof each[1] === 'string');
  } catch {
    return [];
  }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

async function flush(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
}
