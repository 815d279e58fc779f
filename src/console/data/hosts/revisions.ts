/** Revisions of the control plane, from the operators and their config maps. */
import type { ConfigMap } from '../../../api/generated/core/v1.ts';
import type { AnyObject } from '../api/resources.ts';
import { listAt, numberAt, textAt } from '../api/resources.ts';

export const OPERANDS = [
  { plural: 'etcds', kind: 'Etcd', name: 'etcd' },
  { plural: 'kubeapiservers', kind: 'KubeAPIServer', name: 'kube-apiserver' },
  { plural: 'kubecontrollermanagers', kind: 'KubeControllerManager', name: 'kube-controller-manager' },
  { plural: 'kubeschedulers', kind: 'KubeScheduler', name: 'kube-scheduler' },
] as const;

export interface NodeRevision {
  readonly node: string;
  readonly current: number;
  /** Revision that is being installed; 0 if there is none. */
  readonly target: number;
  readonly failed: number;
  readonly errors: readonly string[];
}

/** Revision of each master, from the status of an operator. */
export function nodeRevisions(operator: AnyObject): readonly NodeRevision[] {
  return listAt(operator, 'status', 'nodeStatuses').map((status) => {
    const current = numberAt(status, 0, 'currentRevision');
    const target = numberAt(status, 0, 'targetRevision');
    const errors = (status as { readonly lastFailedRevisionErrors?: unknown }).lastFailedRevisionErrors;
    return {
      node: textAt(status, 'nodeName'),
      current,
      target: target === current ? 0 : target,
      failed: numberAt(status, 0, 'lastFailedRevision'),
      errors: Array.isArray(errors) ? errors.map(String) : [],
    };
  });
}

export interface RevisionView {
  readonly number: number;
  readonly state: string;
  readonly reason: string;
  readonly created: string;
  /** Settings in the operator's object, as JSON with one field per line. */
  readonly settings: string;
}

/** Revisions from the config maps `revision-status-N`, newest first. */
export function revisionViews(maps: readonly ConfigMap[]): readonly RevisionView[] {
  return maps
    .filter(({ metadata }) => /^revision-status-\d+$/.test(metadata?.name ?? ''))
    .map(({ metadata, data = {} }) => ({
      number: Number(metadata?.name?.slice('revision-status-'.length)),
      state: data['status'] ?? '',
      reason: data['reason'] ?? '',
      created: metadata?.creationTimestamp ?? '',
      settings: indented(data['settings'] ?? ''),
    }))
    .sort((a, b) => b.number - a.number);
}

function indented(text: string): string {
  if (text === '') return '';
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/** Duration between two times, such as `4m 12s`; '' if a time is missing. */
export function tookText(started: string, completed: string): string {
  const seconds = Math.round((Date.parse(completed) - Date.parse(started)) / 1_000);
  if (Number.isNaN(seconds) || seconds < 0) return '';
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
}
