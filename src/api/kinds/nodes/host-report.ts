/**
 * What a host reports about itself in annotations of its Node: results of probes that only the host can make, its
 * version, and how far an update is. Written by the host process when something has changed.
 */
import type { KubeObject } from '../../meta/object.ts';

/** JSON of a `HostReport`; written by the host. */
export const REPORT_ANNOTATION = 'hyperedge.dev/host-report';
/** JSON of a `HostUpdate`; written by the host. */
export const UPDATE_ANNOTATION = 'hyperedge.dev/update';
/** JSON of a `WantedUpdate`; written by the leading master. */
export const WANTED_ANNOTATION = 'hyperedge.dev/desired-update';

/** JSON of a `PeerReport`; written by every host that probes others. */
export const PEERS_ANNOTATION = 'hyperedge.dev/peer-report';

/** What a host can probe by itself. A host without the role lacks the name. */
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
  /** Of the host process that runs. */
  readonly version: string;
  /** Kubernetes release of the same executable. */
  readonly kubernetes: string;
  /** False: the release has no authority of its own for serving certificates of kubelets. */
  readonly kubeletAuthority: boolean;
  /** Empty: the probe passed; otherwise why it failed. */
  readonly probes: Readonly<Partial<Record<HostProbe, string>>>;
}

export interface WantedUpdate {
  /** A new one for each attempt. */
  readonly id: string;
  readonly version: string;
  /** SHA-256 of the release's manifest in hex; empty: the version that the host has kept from before. */
  readonly manifest: string;
  /** The Node is drained first. */
  readonly drain?: boolean;
}

export interface HostUpdate {
  /** Of the `WantedUpdate` that this is about. */
  readonly id: string;
  readonly version: string;
  readonly state: 'Fetching' | 'Restarting' | 'Done' | 'Failed';
  readonly message: string;
}

/** Results of probes of hosts under update, by the names of their Nodes. */
export type PeerReport = Readonly<Record<string, PeerResult>>;

export interface PeerResult {
  /** The id of the `WantedUpdate` of the probed host. */
  readonly id: string;
  /** Empty: the host was reached; otherwise why it was not. */
  readonly why: string;
}

const MAX_TEXT = 512;

/** Undefined: absent or not of this form. */
export function peerReportOf(node: KubeObject): PeerReport | undefined {
  const value = parsed(node, PEERS_ANNOTATION);
  if (value === undefined) return undefined;
  const results = Object.entries(value).map(([name, given]): [string, PeerResult] => {
    const { id, why } = fieldsOf(given);
    return [name, { id: textOf(id), why: typeof why === 'string' ? plain(why) : 'no result' }];
  });
  return Object.fromEntries(results);
}

/** Undefined: absent or not of this form. */
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

/** Undefined: absent or not of this form. */
export function hostUpdateOf(node: KubeObject): HostUpdate | undefined {
  const value = parsed(node, UPDATE_ANNOTATION);
  const state = (['Fetching', 'Restarting', 'Done', 'Failed'] as const).find((each) => each === value?.['state']);
  if (value === undefined || state === undefined) return undefined;
  return { id: textOf(value['id']), version: textOf(value['version']), state, message: textOf(value['message']) };
}

/** Undefined: absent or not of this form. */
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

/** A host is not trusted with the terminals of administrators. */
const plain = (text: string): string =>
  Array.from(text.slice(0, MAX_TEXT), (each) => (each < ' ' || each === '\u007f' ? ' ' : each)).join('');
