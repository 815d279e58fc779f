/** The server and credentials of a kubeconfig, for webhooks that the API server calls. */
import { parse } from 'yaml';
import type { RemoteEndpoint } from '../../apiserver/index.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { type PemSource, parseKubeconfig } from '../../client/index.ts';
import { checkSecret, type OpenSecret, readReferenced, readSecret } from '../config/files.ts';
import { resolveRelativeTo } from '../config/master-config.ts';

/** Reads the kubeconfig of a webhook. Throws CodedErrors that name the file and the field. */
export async function readRemoteEndpoint(
  file: string,
  referredToBy: string,
  onOpenSecret?: OpenSecret,
): Promise<RemoteEndpoint> {
  const text = await readReferenced(file, referredToBy);
  const refuse = (why: string, cause?: unknown): never => {
    throw new CodedError('bad-config', `${file}: ${why}`, { cause });
  };
  let access: ReturnType<typeof parseKubeconfig>;
  try {
    access = parseKubeconfig(parse(text));
  } catch (error) {
    return refuse(messageOf(error), error);
  }
  if (access.insecureSkipTlsVerify === true)
    refuse('insecure-skip-tls-verify is not accepted; give certificate-authority');
  const { protocol, hostname } = new URL(access.server);
  if (protocol !== 'https:' && !(protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)))
    refuse(`server ${access.server} must be https://`);
  if ((access.key !== undefined && 'data' in access.key) || access.token !== undefined)
    await checkSecret(file, referredToBy, onOpenSecret);
  const secret = (path: string): Promise<string> => readSecret(path, file, onOpenSecret);
  const pem = (source: PemSource | undefined, read: typeof readReferenced): Promise<string> | undefined => {
    if (source === undefined) return undefined;
    return 'data' in source ? Promise.resolve(source.data) : read(resolveRelativeTo(file, source.file), file);
  };
  const ca = await pem(access.ca, readReferenced);
  const certificate = await pem(access.cert, readReferenced);
  const key = await pem(access.key, secret);
  const token =
    access.token ??
    (access.tokenFile === undefined ? undefined : (await secret(resolveRelativeTo(file, access.tokenFile))).trim());
  return {
    url: access.server,
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { certificate }),
    ...(key === undefined ? {} : { key }),
    ...(token === undefined ? {} : { token }),
    ...(access.tlsServerName === undefined ? {} : { serverName: access.tlsServerName }),
  };
}
