/**
 * Annotations of a Node in which the host process reports its version, the results of probes that only the host can
 * run, and the progress of an update.
 */
import type { KubeObject } from '../../../meta/object.ts';

/** `HostReport` as JSON, written by the host. */
export const REPORT_ANNOTATION = 'hyperedge.dev/host-report';
/** `HostUpdate` as JSON, written by the host. */
export const UPDATE_ANNOTATION = 'hyperedge.dev/update';
/** `WantedUpdate` as JSON, written by the leading master. */
export const WANTED_ANNOTATION = 'hyperedge.dev/desired-update';

/** `PeerReport` as JSON, written by every host that probes other hosts. */
export const PEERS_ANNOTATION = 'hyperedge.dev/peer-report';

/** Probes that a host runs on itself. A probe is absent if the host does not have the role. */
export const HOST_PROBES = [
  'api',
  'authentication',
  'controllers',
  'dns',
  'etcd',
  'network',
  'router',
  'slices',
] as const;
export type HostProbe = (typeof HOST_PROBES)[number];

export interface HostReport {
  /** Version of the running host process. */
  readonly version: string;
  /** Kubernetes release that the executable implements. */
  readonly kubernetes: string;
  /** False if the release has no separate certificate authority for kubelet serving certificates. */
  readonly kubeletAuthority: boolean;
  /** Failure reasons by probe. An empty text means that the probe passed. */
  readonly probes: Readonly<Partial<Record<HostProbe, string>>>;
}

export interface WantedUpdate {
  /** ID of the update attempt. Every attempt has its own ID. */
  readonly id: string;
  readonly version: string;
  /** Hex SHA-256 of the release manifest. Empty means a rollback to the version that the host has kept. */
  readonly manifest: string;
  /** Whether the Node is drained first. */
  readonly drain?: boolean;
}

export interface HostUpdate {
  /** The `id` of the `WantedUpdate`. */
  readonly id: string;
  readonly version: string;
  readonly state: 'Fetching' | 'Restarting' | 'Done' | 'Failed';
  readonly message: string;
  /** Time at which the host first reported this state. Absent for hosts with earlier releases. */
  readonly since?: string;
}

/** Results of probes of hosts that are being updated, by Node name. */
export type PeerReport = Readonly<Record<string, PeerResult>>;

export interface PeerResult {
  /** The `id` of the probed host's `WantedUpdate`. */
  readonly id: string;
  /** Failure reason. Empty if the host was reached. */
  readonly why: string;
}

const MAX_TEXT = 512;

/** Parses the peer report of a Node. Undefined if the annotation is absent or malformed. */
export function peerReportOf(node: KubeObject): PeerReport | undefined {
  const value = parsed(node, PEERS_ANNOTATION);
  if (value === undefined) return undefined;
  const results = Object.entries(value).map(([name, given]): [string, PeerResult] => {
    const { id, why } = fieldsOf(given);
    return [name, { id: textOf(id), why: typeof why === 'string' ? plain(why) : 'no result' }];
  });
  return Object.fromEntries(results);
}

/** Parses the host report of a Node. Undefined if the annotation is absent or malformed. */
export function hostReportOf(node: KubeObject): HostReport | undefined {
  const value = parsed(node, REPORT_ANNOTATION);
  if (value === undefined) return undefined;
  const given = fieldsOf(value['probes']);
  const probes: Partial<Record<HostProbe, string>> = {};
  for (const name of HOST_PROBES) {
    const result = given[name];
    if (typeof result === 'string') probes[name] = plain(result);
  }
  return {
    version: textOf(value['version']),
    kubernetes: textOf(value['kubernetes']),
    kubeletAuthority: value['kubeletAuthority'] === true,
    probes,
  };
}

/** Parses the update progress of a Node. Undefined if the annotation is absent or malformed. */
export function hostUpdateOf(node: KubeObject): HostUpdate | undefined {
  const value = parsed(node, UPDATE_ANNOTATION);
  const state = (['Fetching', 'Restarting', 'Done', 'Failed'] as const).find((each) => each === value?.['state']);
  if (value === undefined || state === undefined) return undefined;
  const [id, version, message, since] = ['id', 'version', 'message', 'since'].map((name) => textOf(value[name]));
  const update = { id: id ?? '', version: version ?? '', state, message: message ?? '' };
  return since === undefined || Number.isNaN(Date.parse(since)) ? update : { ...update, since };
}

/** Parses the update that a Node should make. Undefined if the annotation is absent or malformed. */
export function wantedUpdateOf(node: KubeObject): WantedUpdate | undefined {
  const value = parsed(node, WANTED_ANNOTATION);
  if (value === undefined) return undefined;
  const [id, version, manifest] = [value['id'], value['version'], value['manifest']].map(textOf);
  return id === undefined || id === '' || version === undefined || version === ''
    ? undefined
    : { id, version, manifest: manifest ?? '', ...(value['drain'] === true ? { drain: true } : {}) };
}

function parsed(node: KubeObject, annotation: string): Record<string, unknown> | undefined {
  const text = node.metadata?.annotations?.[annotation];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? fieldsOf(value) : undefined;
  } catch {
    return undefined;
  }
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

const textOf = (value: unknown): string => (typeof value === 'string' ? plain(value) : '');

/** Replaces control characters: the text comes from a host and is shown in administrators' terminals. */
const plain = (text: string): string =>
  Array.from(text.slice(0, MAX_TEXT), (each) => (each < ' ' || each === '\u007f' ? ' ' : each)).join('');
