/**
 * Paths of certificates, keys and kubeconfigs as in OKD 3.11. All paths are absolute; `root` is `/` or the directory of
 * `--root`.
 */
import { join } from 'node:path';

export interface PairFiles {
  readonly cert: string;
  readonly key: string;
}

/** Files of the successor of an authority. Clients trust it before it signs. */
export const successorOf = ({ cert, key }: PairFiles): PairFiles => pairWithSuffix(cert, key, 'next');

/**
 * Files of the predecessor of an authority. Clients trust it until all certificates that it has issued are replaced.
 */
export const predecessorOf = ({ cert, key }: PairFiles): PairFiles => pairWithSuffix(cert, key, 'old');

const pairWithSuffix = (cert: string, key: string, word: string): PairFiles => ({
  cert: cert.replace(/\.crt$/, `.${word}.crt`),
  key: key.replace(/\.key$/, `.${word}.key`),
});

const pair = (directory: string, name: string): PairFiles => ({
  cert: join(directory, `${name}.crt`),
  key: join(directory, `${name}.key`),
});

export interface MasterFiles {
  readonly directory: string;
  /** Authority `openshift-signer`. It signs the certificates of the API server, of its clients, and of nodes. */
  readonly ca: PairFiles;
  /** Bundle of trusted authorities: `ca` and, during its rotation, its successor or predecessor. */
  readonly caBundle: string;
  /** Authorities of kubelets' serving certificates. */
  readonly kubeletCaBundle: string;
  readonly server: PairFiles;
  readonly kubeletClient: PairFiles;
  readonly etcdClient: PairFiles;
  readonly etcdCa: string;
  readonly frontProxyCa: PairFiles;
  readonly frontProxyCaBundle: string;
  readonly aggregatorFrontProxy: PairFiles;
  /** Default certificate of routes. */
  readonly router: PairFiles;
  readonly admin: PairFiles;
  readonly adminKubeconfig: string;
  readonly controllers: PairFiles;
  /** Kubeconfig of the controllers, with OKD's file name. */
  readonly controllersKubeconfig: string;
  readonly scheduler: PairFiles;
  readonly schedulerKubeconfig: string;
  readonly serviceAccountsPrivateKey: string;
  /** Key that signs tokens from the next phase of a rotation on. */
  readonly serviceAccountsNextKey: string;
  readonly serviceAccountsPublicKey: string;
}

export function masterFiles(root: string): MasterFiles {
  const directory = join(root, 'etc/origin/master');
  return {
    directory,
    ca: pair(directory, 'ca'),
    caBundle: join(directory, 'ca-bundle.crt'),
    kubeletCaBundle: join(directory, 'kubelet-ca-bundle.crt'),
    server: pair(directory, 'master.server'),
    kubeletClient: pair(directory, 'master.kubelet-client'),
    etcdClient: pair(directory, 'master.etcd-client'),
    etcdCa: join(directory, 'master.etcd-ca.crt'),
    frontProxyCa: pair(directory, 'front-proxy-ca'),
    frontProxyCaBundle: join(directory, 'front-proxy-ca-bundle.crt'),
    aggregatorFrontProxy: pair(directory, 'aggregator-front-proxy'),
    router: pair(directory, 'openshift-router'),
    admin: pair(directory, 'admin'),
    adminKubeconfig: join(directory, 'admin.kubeconfig'),
    controllers: pair(directory, 'openshift-master'),
    controllersKubeconfig: join(directory, 'openshift-master.kubeconfig'),
    scheduler: pair(directory, 'kube-scheduler'),
    schedulerKubeconfig: join(directory, 'kube-scheduler.kubeconfig'),
    serviceAccountsPrivateKey: join(directory, 'serviceaccounts.private.key'),
    serviceAccountsNextKey: join(directory, 'serviceaccounts.private.next.key'),
    serviceAccountsPublicKey: join(directory, 'serviceaccounts.public.key'),
  };
}

export interface EtcdFiles {
  readonly directory: string;
  readonly signer: PairFiles;
  /**
   * Copy of the signer's certificate. Components can read it without access to the signer's directory, which contains
   * its key.
   */
  readonly ca: string;
  readonly server: PairFiles;
  readonly peer: PairFiles;
}

export function etcdFiles(root: string): EtcdFiles {
  const directory = join(root, 'etc/etcd');
  return {
    directory,
    signer: pair(join(directory, 'ca'), 'ca'),
    ca: join(directory, 'ca.crt'),
    server: pair(directory, 'server'),
    peer: pair(directory, 'peer'),
  };
}

export interface NodeFiles {
  readonly directory: string;
  /** Authorities of the API server's certificate and of the kubelet's clients. */
  readonly clientCa: string;
  readonly kubeconfig: string;
  readonly certificates: string;
  /** Kubeconfig with the bootstrap credentials of a host that has no certificate yet. */
  readonly bootstrapKubeconfig: string;
  /** Link to the newest `kubelet-client-<time>.pem`: certificate and key in one file. */
  readonly clientCurrent: string;
  /** Link to the newest `kubelet-server-<time>.pem`. */
  readonly serverCurrent: string;
}

export function nodeFiles(root: string): NodeFiles {
  const directory = join(root, 'etc/origin/node');
  const certificates = join(directory, 'certificates');
  return {
    directory,
    clientCa: join(directory, 'client-ca.crt'),
    kubeconfig: join(directory, 'node.kubeconfig'),
    certificates,
    bootstrapKubeconfig: join(directory, 'bootstrap.kubeconfig'),
    clientCurrent: join(certificates, 'kubelet-client-current.pem'),
    serverCurrent: join(certificates, 'kubelet-server-current.pem'),
  };
}
