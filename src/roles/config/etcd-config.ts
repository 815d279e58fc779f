/** `/etc/etcd/etcd.conf.yaml`, in etcd's own field names. File names are relative to it. */
import { CodedError } from '../../base/errors.ts';
import type { Field, Parsed } from './strict-yaml.ts';
import { boolean, object, readConfigFile, string } from './strict-yaml.ts';

const security = object(
  { 'cert-file': string(), 'key-file': string(), 'trusted-ca-file': string(), 'client-cert-auth': boolean() },
  ['cert-file', 'key-file', 'trusted-ca-file'],
);

const shape = {
  name: string(),
  'data-dir': string(),
  'listen-client-urls': string({ pattern: /^https:\/\/[^/,]+$/, mend: 'give one URL such as https://127.0.0.1:2379' }),
  'advertise-client-urls': string(),
  'listen-peer-urls': string(),
  'initial-advertise-peer-urls': string(),
  'client-transport-security': security,
  'peer-transport-security': security,
  'auth-token': string(),
} as const;

type Required = 'name' | 'data-dir' | 'listen-client-urls' | 'advertise-client-urls' | 'client-transport-security';
export type EtcdConfig = Parsed<typeof shape, Required>;

const field: Field<EtcdConfig> = object(shape, [
  'name',
  'data-dir',
  'listen-client-urls',
  'advertise-client-urls',
  'client-transport-security',
]);

/** Throws CodedError 'bad-config' naming file, line and field. */
export async function readEtcdConfig(file: string): Promise<EtcdConfig> {
  const config = await readConfigFile(file, field);
  if (config === undefined) throw new CodedError('bad-config', `${file} is not there; hyperedge run writes it`);
  return config;
}
