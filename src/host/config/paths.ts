/** Paths of the files and directories of a host, all of them below its root. */

import { realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';

export interface Paths {
  readonly masterConfig: string;
  readonly masterEnv: string;
  readonly encryptionConfig: string;
  /** Directory in which the API server may write audit logs. */
  readonly masterLogs: string;
  readonly nodeConfig: string;
  /** File with the settings that this host received on joining. */
  readonly joined: string;
  /** File with the last known configuration of the node group. */
  readonly nodeGroup: string;
  /** Sysconfig file whose BOOTSTRAP_CONFIG_NAME names the node group. */
  readonly nodeSysconfig: string;
  readonly etcdConfig: string;
  readonly staticPods: string;
  /** Directory with copies of the input files of control-plane components: those of each revision and those in use. */
  readonly staticPodResources: string;
  /** Directory of manifests that the control socket has received. */
  readonly submittedPods: string;
  readonly etcdData: string;
  readonly volumes: string;
  /** Directory with the data of the local provisioner's volumes. */
  readonly localVolumes: string;
  readonly images: string;
  /** Directory of operator catalogs. */
  readonly catalogs: string;
  readonly containers: string;
  readonly networkState: string;
  /** File with the record of this instance's links, nftables tables and routes. */
  readonly networkRecord: string;
  /** Directory of CNI configurations. */
  readonly cniConfig: string;
  /** File with the last pod CIDRs of the node. */
  readonly podCidr: string;
  /** File with the last known API servers, for a boot while no API server can be discovered. */
  readonly masters: string;
  /** Directory with the last known API objects, encrypted with the key in `lastKnownKey`. */
  readonly lastKnown: string;
  readonly lastKnownKey: string;
  /** Directory with one empty file for each local volume that this host has created. */
  readonly createdVolumes: string;
  readonly podLogs: string;
  readonly containerLogs: string;
  readonly run: string;
  readonly pidFile: string;
  readonly controlSocket: string;
  /** Socket for pods of this host. It has its own directory, which the pods of the store and the controllers mount. */
  readonly agentSocket: string;
  /** Symbolic link to the agent socket, at the path that clients on the host use. */
  readonly agentLink: string;
  readonly gossipKeyring: string;
  readonly snapshots: string;
  readonly snapshotSchedule: string;
  /** File with the latest known time. The clock is not trusted if it shows an earlier time. */
  readonly timeFloor: string;
  /** File that reserves disk space. It is deleted if a start needs space on a full disk. */
  readonly diskReserve: string;
  /** Directory with files of releases, named by digest. */
  readonly releases: string;
  /** File with the record of the last update of this host. */
  readonly updateRecord: string;
  /** Directory of installed executables. */
  readonly executables: string;
}

export function pathsBelow(root: string): Paths {
  const at = (path: string): string => join(root, path);
  return {
    masterConfig: at('etc/origin/master/master-config.yaml'),
    masterEnv: at('etc/origin/master/master.env'),
    encryptionConfig: at('etc/origin/master/encryption-config.yaml'),
    masterLogs: at('var/log/origin'),
    nodeConfig: at('etc/origin/node/node-config.yaml'),
    joined: at('etc/origin/node/joined.yaml'),
    nodeGroup: at('etc/origin/node/node-group.yaml'),
    nodeSysconfig: at('etc/sysconfig/atomic-openshift-node'),
    etcdConfig: at('etc/etcd/etcd.conf.yaml'),
    staticPods: at('etc/origin/node/pods'),
    staticPodResources: at('var/lib/origin/static-pod-resources'),
    submittedPods: at('var/lib/origin/submitted-pods'),
    etcdData: at('var/lib/origin/openshift.local.etcd'),
    volumes: at('var/lib/origin/openshift.local.volumes'),
    localVolumes: at('var/lib/origin/local-volumes'),
    images: at('var/lib/origin/images'),
    catalogs: at('var/lib/origin/catalogs'),
    containers: at('var/lib/origin/containers'),
    networkState: at('var/lib/origin/network'),
    networkRecord: at('var/lib/origin/host-network.json'),
    cniConfig: at('etc/cni/net.d'),
    podCidr: at('var/lib/origin/pod-cidr'),
    masters: at('var/lib/origin/masters'),
    lastKnown: at('var/lib/origin/last-known'),
    lastKnownKey: at('etc/origin/node/last-known.key'),
    createdVolumes: at('etc/origin/node/local-volumes'),
    podLogs: at('var/log/pods'),
    containerLogs: at('var/log/containers'),
    run: at('run/hyperedge'),
    pidFile: at('run/hyperedge/run.pid'),
    controlSocket: at('run/hyperedge/control.sock'),
    agentSocket: at('run/hyperedge/agent/agent.sock'),
    agentLink: at('run/hyperedge/agent.sock'),
    gossipKeyring: at('etc/origin/node/gossip-keyring.json'),
    snapshots: at('var/lib/origin/snapshots'),
    snapshotSchedule: at('etc/origin/node/snapshot-schedule.yaml'),
    timeFloor: at('var/lib/origin/time-floor'),
    diskReserve: at('var/lib/origin/disk-reserve'),
    releases: at('var/lib/origin/releases'),
    updateRecord: at('var/lib/origin/update/record.json'),
    executables: at('usr/local/bin'),
  };
}

/** The absolute path of the root without symbolic links, so that paths in mounts and in command lines are equal. */
export async function canonicalRoot(root: string | undefined): Promise<string> {
  const absolute = resolve(root ?? '/');
  return realpath(absolute).catch(() => absolute);
}
