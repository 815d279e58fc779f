/** Downloads files of releases from the API servers of masters, over TLS with the node's certificate. */
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { checkServerIdentity } from 'node:tls';
import { RELEASE_PATH } from '../../../api/releases/announcement.ts';
import type { ReleaseFile } from '../../../api/releases/manifest.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { DigestStore } from './files.ts';

export interface Masters {
  /** URLs of other hosts' API servers, in any order. */
  readonly servers: () => Promise<readonly string[]>;
  readonly credentials: () => { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

export interface DownloadOptions extends Masters {
  readonly store: DigestStore;
}

const IDLE_MS = 20_000;
const IDENTITY = '127.0.0.1';

/** Downloads a file from a master. Throws CodedError 'unavailable' with the error of each server. */
export async function download(
  file: Pick<ReleaseFile, 'sha256' | 'size'>,
  { store, ...masters }: DownloadOptions,
): Promise<string> {
  const present = await store.pathOf(file.sha256);
  if (present !== undefined) return present;
  const what = `release file ${file.sha256.slice(0, 12)}`;
  return fromMasters(what, RELEASE_PATH + file.sha256, masters, (content) => store.add(file, content));
}

/**
 * Returns the result of `take` for the first response that it accepts. Throws CodedError 'unavailable' with the error
 * of each server. The errors 'full' and 'changed' of `take` are thrown immediately, because another server would not
 * help.
 */
export async function fromMasters<T>(
  what: string,
  path: string,
  { servers, credentials }: Masters,
  take: (content: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const failures: string[] = [];
  for (const server of await servers()) {
    try {
      const response = await get(new URL(path, server), credentials());
      try {
        return await take(response);
      } finally {
        response.destroy();
      }
    } catch (error) {
      if (error instanceof CodedError && (error.code === 'full' || error.code === 'changed')) throw error;
      failures.push(`${server}: ${messageOf(error)}`);
    }
  }
  const why = failures.length === 0 ? 'no master is known' : failures.join('; ');
  throw new CodedError('unavailable', `${what}: ${why}`);
}

function get(url: URL, credentials: ReturnType<DownloadOptions['credentials']>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      ...credentials,
      minVersion: 'TLSv1.2',
      timeout: IDLE_MS,
      headers: { 'user-agent': 'hyperedge-update' },
      // Each API server's certificate is valid for its loopback address.
      checkServerIdentity: (_, certificate) => checkServerIdentity(IDENTITY, certificate),
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer')));
    sent.on('error', reject);
    sent.on('response', (response) => {
      if (response.statusCode === 200) resolve(response);
      else {
        response.resume();
        reject(new Error(`HTTP ${response.statusCode}`));
      }
    });
    sent.end();
  });
}
