/** Records of the sandboxes' pod network resources, in files that survive a restart of the host process. */

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { decodeJson, list, number, object, oneOf, optional, text } from '../../../../base/decode.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { Log } from '../../../../base/log.ts';
import type { PortMapping } from '../../../../runtime/port.ts';

export interface Attachment {
  readonly sandboxId: string;
  /** UID of the pod; undefined in records of earlier versions. */
  readonly uid?: string;
  /** Addresses of the pod, the primary family's address first. */
  readonly ips: readonly string[];
  readonly link: string;
  /** Path of the pod's network namespace; undefined in records of earlier versions. */
  readonly netnsPath?: string;
  readonly portMappings: readonly PortMapping[];
}

/** Format of a record. Earlier versions recorded only one address. */
const RECORDED = object({
  sandboxId: text,
  uid: optional(text),
  ip: optional(text),
  ips: optional(list(text)),
  link: text,
  netnsPath: optional(text),
  portMappings: list(
    object({ protocol: oneOf('TCP', 'UDP', 'SCTP'), containerPort: number, hostPort: number, hostIp: text }),
  ),
});

const SUFFIX = '.json';

export class AttachmentFiles {
  readonly #directory: string;
  readonly #log: Log;
  /** Sandboxes whose records exist but cannot be read. */
  readonly #unreadable = new Set<string>();

  constructor(directory: string, log: Log) {
    this.#directory = directory;
    this.#log = log;
  }

  /**
   * Readable records. A record that exists but cannot be read stays until its sandbox ends, because a running pod may
   * use its addresses.
   */
  async load(): Promise<Attachment[]> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const found: Attachment[] = [];
    for (const name of await readdir(this.#directory)) {
      if (!name.endsWith(SUFFIX)) continue;
      try {
        found.push(parse(await readFile(join(this.#directory, name), 'utf8')));
      } catch (error) {
        if (isAbsent(error)) continue;
        this.#log.error('pod network record unreadable; its addresses stay reserved and its host ports are closed', {
          file: join(this.#directory, name),
          error: messageOf(error),
        });
        this.#unreadable.add(name.slice(0, -SUFFIX.length));
      }
    }
    return found;
  }

  get hasUnreadable(): boolean {
    return this.#unreadable.size > 0;
  }

  /** Removes unreadable records, for example of interrupted writes, whose sandboxes do not exist. */
  async removeUnreadable(alive: ReadonlySet<string>): Promise<void> {
    for (const sandboxId of this.#unreadable) if (!alive.has(sandboxId)) await this.remove(sandboxId);
  }

  async write(record: Attachment): Promise<void> {
    const path = this.#path(record.sandboxId);
    await writeFile(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  async remove(sandboxId: string): Promise<void> {
    await rm(this.#path(sandboxId), { force: true });
    this.#unreadable.delete(sandboxId);
  }

  #path(sandboxId: string): string {
    return join(this.#directory, `${sandboxId}${SUFFIX}`);
  }
}

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

function parse(content: string): Attachment {
  const { ip, ips = ip === undefined ? [] : [ip], ...record } = decodeJson(RECORDED, content, 'record');
  if (ips.length === 0 || ips.some((each) => isIP(each) === 0)) throw new Error('not a pod network record');
  return { ...record, ips };
}
