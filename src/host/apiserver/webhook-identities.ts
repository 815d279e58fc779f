/** The client credentials for admission webhooks (`kubeConfigFile` of a WebhookAdmissionConfiguration). */
import { parse } from 'yaml';
import type { WebhookIdentities, WebhookIdentity } from '../../apiserver/index.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { type OpenSecret, readReferenced, readSecret } from '../config/files.ts';
import { resolveRelativeTo } from '../config/master-config.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Credential fields that are not supported. */
const REFUSED = ['exec', 'auth-provider', 'as', 'as-uid', 'as-groups', 'as-user-extra'];

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const entries = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : []);

/** Reads the credentials from a kubeconfig. Throws CodedErrors that name the file and the field. */
export async function readWebhookIdentities(
  file: string,
  referredToBy: string,
  onOpenSecret?: OpenSecret,
): Promise<WebhookIdentities> {
  const refuse = (why: string, cause?: unknown): never => {
    throw new CodedError('bad-config', `${file}: ${why}`, { cause });
  };
  const text = await readReferenced(file, referredToBy);
  let document: unknown;
  try {
    document = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    return refuse(messageOf(error), error);
  }
  if (!isFields(document) || document['kind'] !== 'Config')
    return refuse('is not a kubeconfig; its kind must be Config');
  const read = {
    plain: (path: string) => readReferenced(resolveRelativeTo(file, path), file),
    secret: (path: string) => readSecret(resolveRelativeTo(file, path), file, onOpenSecret),
  };
  const users = new Map<string, WebhookIdentity>();
  for (const [index, { name, user = {} }] of entries(document['users']).entries()) {
    const at = `users[${index}]`;
    if (typeof name !== 'string' || name === '') return refuse(`${at}.name is missing`);
    if (!isFields(user)) return refuse(`${at}.user must be an object`);
    for (const field of REFUSED)
      if (user[field] !== undefined)
        refuse(`${at}.user.${field} is not supported; give a token or a client certificate`);
    users.set(name, await identityOf(user, read, (why) => refuse(`${at}.user.${why}`)));
  }
  const context = entries(document['contexts']).find(({ name }) => name === document['current-context'])?.['context'];
  const current = isFields(context) ? users.get(String(context['user'])) : undefined;
  return { users, ...(current === undefined ? {} : { current }) };
}

async function identityOf(
  user: Fields,
  read: Readonly<Record<'plain' | 'secret', (path: string) => Promise<string>>>,
  refuse: (why: string) => never,
): Promise<WebhookIdentity> {
  const textOf = (field: string): string | undefined => {
    const value = user[field];
    if (value === undefined || value === '') return undefined;
    return typeof value === 'string' ? value : refuse(`${field} must be a string`);
  };
  const pem = (field: string, from: 'plain' | 'secret'): Promise<string> | string | undefined => {
    const data = textOf(`${field}-data`);
    if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
    const path = textOf(field);
    return path === undefined ? undefined : read[from](path);
  };
  const certificate = await pem('client-certificate', 'plain');
  const key = await pem('client-key', 'secret');
  if ((certificate === undefined) !== (key === undefined))
    refuse(
      `${certificate === undefined ? 'client-certificate' : 'client-key'} is missing: a client certificate and its key must be given together`,
    );
  const tokenFile = textOf('tokenFile');
  const token = textOf('token') ?? (tokenFile === undefined ? undefined : (await read.secret(tokenFile)).trim());
  const [name, password] = [textOf('username'), textOf('password')];
  const authorization =
    token !== undefined
      ? `Bearer ${token}`
      : name === undefined && password === undefined
        ? undefined
        : `Basic ${Buffer.from(`${name ?? ''}:${password ?? ''}`).toString('base64')}`;
  return {
    ...(certificate === undefined || key === undefined ? {} : { certificate, key }),
    ...(authorization === undefined ? {} : { authorization }),
  };
}
