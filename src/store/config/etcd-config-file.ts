/**
 * The fields of `/etc/etcd/etcd.conf.yaml` that this host writes, with etcd's names. `file.ts` parses the file,
 * including all other fields of etcd.
 */
export interface EtcdConfig {
  readonly name: string;
  readonly 'data-dir': string;
  readonly 'listen-client-urls': string;
  readonly 'advertise-client-urls': string;
  readonly 'initial-advertise-peer-urls': string;
  readonly 'listen-peer-urls'?: string;
  readonly 'initial-cluster'?: string;
  readonly 'initial-cluster-state'?: string;
  readonly 'initial-cluster-token'?: string;
  readonly 'client-transport-security': {
    readonly 'cert-file': string;
    readonly 'key-file': string;
    readonly 'trusted-ca-file': string;
    readonly 'client-cert-auth': boolean;
  };
  readonly 'peer-transport-security'?: EtcdConfig['client-transport-security'];
}
