/** The first configuration of a host: from a file, or from a machine config server with the join token. */
import { request } from 'node:https';
import { CodedError, messageOf } from '../../base/errors.ts';
import { readReferenced } from '../config/files.ts';
import { discover } from '../join/discovery.ts';
import { parseToken } from '../join/token-format.ts';
import type { BootstrapFlags } from './bootstrap-flags.ts';

const ACCEPT = 'application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1';
const TIMEOUT_MS = 30_000;
/** Maximum size of the response, which contains all files of the configuration in encoded form. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads the first configuration. `source`: a file or a URL such as `https://MASTER:22623/config/POOL`. Throws
 * CodedErrors that name the flag and the fix.
 */
export async function servedConfig(source: string, join: BootstrapFlags['join']): Promise<string> {
  if (!/^https?:/.test(source)) return readReferenced(source, '--from-mcs');
  const url = URL.parse(source);
  if (url?.protocol !== 'https:')
    throw new CodedError('bad-flag', '--from-mcs: give a file, or a URL such as https://10.0.0.1:22623/config/worker');
  if (join === undefined)
    throw new CodedError('bad-flag', '--from-mcs: the server requires a token; give --join, --token and --ca-hash too');
  const token = parseToken(join.token, '--token');
  // The authority that the hash identifies has also signed the certificate of the machine config server.
  const { caPem } = await discover(join.server, token, join.caHash);
  return fetchConfig(url, token.bearer, caPem);
}

/** Resolves with the body of the response. `ca`: trusted authorities in PEM format. */
export function fetchConfig(url: URL, token: string, ca: string): Promise<string> {
  const unreachable = (why: string, cause?: Error): CodedError =>
    new CodedError('unreachable', `--from-mcs: ${url.href}: ${why}`, { cause });
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: ACCEPT };
    const outgoing = request(url, { ca, headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('error', (error) => reject(unreachable(messageOf(error), error)));
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > MAX_BYTES) outgoing.destroy(new Error(`the response has more than ${MAX_BYTES} bytes`));
        else chunks.push(chunk);
      });
      response.on('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode === 200) resolve(Buffer.concat(chunks).toString('utf8'));
        else reject(unreachable(REASONS[statusCode] ?? `the server answers ${statusCode}`));
      });
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    outgoing.on('error', (error) => reject(unreachable(messageOf(error), error)));
    outgoing.end();
  });
}

const REASONS: Readonly<Record<number, string>> = {
  401: 'the token is not valid; run "hyperedge token create" on a master',
  403: 'the token may not read this pool',
  404: 'there is no such pool, or it has no configuration yet',
};
