/**
 * Table columns that many kinds share, and formatting of values. Source:
 * k8s.io/kubernetes/pkg/printers/internalversion.
 */

import { displayLabelSelector, labelSelectorOf, nothing } from '../../base/selector.ts';
import type { PodTemplateSpec } from '../generated/core/v1.ts';
import type { LabelSelector } from '../generated/meta/v1.ts';
import type { KubeObject } from '../meta/object.ts';
import type { Column } from '../registry/definition.ts';
import { since } from './duration.ts';

export const NONE = '<none>';

export const nameColumn: Column<KubeObject> = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'The name of the object, unique among its kind within a namespace.',
  cell: (object) => object.metadata?.name ?? '',
};

export const ageColumn: Column<KubeObject> = {
  name: 'Age',
  type: 'string',
  description: 'Time since the object was created.',
  cell: (object, nowMs) => since(object.metadata?.creationTimestamp, nowMs),
};

/** Shows the creation time instead of the age. */
export const createdAtColumn: Column<KubeObject> = {
  name: 'Created At',
  type: 'date',
  description: 'When the object was created.',
  cell: (object) => object.metadata?.creationTimestamp ?? '',
};

/** `wide`: the column is only shown with `-o wide`. */
export function column<T extends KubeObject>(
  name: string,
  description: string,
  cell: (object: T, nowMs: number) => string | number | bigint | boolean | null,
  options: { readonly type?: Column<T>['type']; readonly wide?: boolean } = {},
): Column<T> {
  return { name, type: options.type ?? 'string', description, cell, ...(options.wide === true ? { priority: 1 } : {}) };
}

/** Wide columns of workloads: Containers, Images and Selector. */
export function workloadColumns<T extends KubeObject>(
  template: (object: T) => PodTemplateSpec | undefined,
  selector: (object: T) => string,
): Column<T>[] {
  const containers = (object: T) => template(object)?.spec?.containers ?? [];
  const wide = { wide: true };
  return [
    column<T>(
      'Containers',
      'Names of each container in the template.',
      (object) =>
        containers(object)
          .map((each) => each.name)
          .join(','),
      wide,
    ),
    column<T>(
      'Images',
      'Images referenced by each container in the template.',
      (object) =>
        containers(object)
          .map((each) => each.image ?? '')
          .join(','),
      wide,
    ),
    column<T>('Selector', 'The label selector of the pods this object is responsible for.', selector, wide),
  ];
}

/** Text form of a label selector for tables and scale subresources. */
export function selectorText(selector: LabelSelector | undefined): string {
  return displayLabelSelector(safeSelector(selector));
}

function safeSelector(selector: LabelSelector | undefined) {
  try {
    return labelSelectorOf(selector);
  } catch {
    return nothing;
  }
}

/** `a=b,c=d` in key order, or `<none>`. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const text = Object.entries(labels ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  return text === '' ? NONE : text;
}

/** Up to `limit` entries, followed by the number of remaining ones. */
export function limitedList(entries: readonly string[], limit: number): string {
  const shown = entries.slice(0, limit).join(',');
  return entries.length > limit ? `${shown} + ${entries.length - limit} more...` : shown;
}
