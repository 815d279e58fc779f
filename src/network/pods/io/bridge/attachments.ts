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

export class AttachmentFiles {
  readonly #directory: string;
  readonly #log: Log;

  constructor(directory: string, log: Log) {
    this.#directory = directory;
    this.#log = log;
  }

  async load(): Promise<Attachment[]> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const found: Attachment[] = [];
    for (const name of await readdir(this.#directory)) {
      if (!name.endsWith('.json')) continue;
      try {
        found.push(parse(await readFile(join(this.#directory, name), 'utf8')));
      } catch (error) {
        // The record is incomplete because a power failure interrupted its write. A sandbox is completed only after
        // this write, so no sandbox uses the record.
        this.#log.warn('unreadable pod network record dropped', { name, error: messageOf(error) });
        await rm(join(this.#directory, name), { force: true });
      }
    }
    return found;
  }

  async write(record: Attachment): Promise<void> {
    const path = this.#path(record.sandboxId);
    await writeFile(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  async remove(sandboxId: string): Promise<void> {
    await rm(this.#path(sandboxId), { force: true });
  }

  #path(sandboxId: string): string {
    return join(this.#directory, `${sandboxId}.json`);
  }
}

function parse(content: string): Attachment {
  const { ip, ips = ip === undefined ? [] : [ip], ...record } = decodeJson(RECORDED, content, 'record');
  if (ips.length === 0 || ips.some((each) => isIP(each) === 0)) throw new Error('not a pod network record');
  return { ...record, ips };
}
