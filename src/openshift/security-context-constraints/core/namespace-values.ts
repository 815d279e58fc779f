/**
 * UIDs, groups and SELinux level that are allocated to a namespace. An SCC that does not set its own values uses them.
 * Source: openshift/apiserver-library-go pkg/securitycontextconstraints/sccmatching.
 */
import { MCS, SUPPLEMENTAL_GROUPS, UID_RANGE } from '../../../api/kinds/cluster/namespaces/security.ts';
import type { IdRange, SecurityContextConstraints } from '../kinds/securitycontextconstraints/types.ts';

/** Largest ID that the kernel and the API accept. */
const MAX_ID = 2_147_483_647;

export interface NamespaceValues {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Parses `START/SIZE` or `START-END`; undefined if the text is invalid or an ID is too large. */
export function parseBlock(text: string): { readonly min: number; readonly max: number } | undefined {
  const match = /^(\d{1,10})([/-])(\d{1,10})$/.exec(text.trim());
  if (match === null) return undefined;
  const min = Number(match[1]);
  const max = match[2] === '/' ? min + Number(match[3]) - 1 : Number(match[3]);
  return max < min || max > MAX_ID ? undefined : { min, max };
}

/** Whether the SCC uses any value of the namespace. */
export function needsNamespace(scc: SecurityContextConstraints): boolean {
  return needsUsers(scc) || needsLevel(scc) || needsGroups(scc.fsGroup) || needsGroups(scc.supplementalGroups);
}

const needsUsers = ({ runAsUser }: SecurityContextConstraints): boolean =>
  runAsUser?.type === 'MustRunAsRange' && runAsUser.uidRangeMin === undefined && runAsUser.uidRangeMax === undefined;

const needsLevel = ({ seLinuxContext }: SecurityContextConstraints): boolean =>
  seLinuxContext?.type === 'MustRunAs' && (seLinuxContext.seLinuxOptions?.level ?? '') === '';

const needsGroups = (strategy: { readonly type?: string; readonly ranges?: readonly IdRange[] } | undefined): boolean =>
  strategy?.type === 'MustRunAs' && (strategy.ranges ?? []).length === 0;

/** Returns the SCC with the values of the namespace, or an error message if the namespace lacks a value. */
export function withNamespaceValues(
  scc: SecurityContextConstraints,
  { name, annotations }: NamespaceValues,
): SecurityContextConstraints | string {
  if (!needsNamespace(scc)) return scc;
  const missing = (what: string, why: string): string =>
    `unable to find pre-allocated ${what} annotation for namespace ${name} while trying to configure SCC ${scc.metadata?.name ?? ''}: ${why}`;
  const resolved: SecurityContextConstraints = { ...scc };
  if (needsUsers(scc)) {
    const text = annotations[UID_RANGE];
    const block = parseBlock(text ?? '');
    if (block === undefined) return missing('uid', problem(UID_RANGE, text));
    resolved.runAsUser = { ...scc.runAsUser, uidRangeMin: block.min, uidRangeMax: block.max };
  }
  if (needsLevel(scc)) {
    const level = annotations[MCS] ?? '';
    if (level === '') return missing('mcs', problem(MCS, annotations[MCS]));
    resolved.seLinuxContext = {
      ...scc.seLinuxContext,
      seLinuxOptions: { ...scc.seLinuxContext?.seLinuxOptions, level },
    };
  }
  const groups = annotations[SUPPLEMENTAL_GROUPS] ?? annotations[UID_RANGE];
  const blocks = (groups ?? '').split(',').map(parseBlock);
  const ranges = blocks.filter((block) => block !== undefined);
  const first = ranges[0];
  const needsAny = needsGroups(scc.fsGroup) || needsGroups(scc.supplementalGroups);
  if (needsAny && (first === undefined || ranges.length < blocks.length))
    return missing('group', problem(SUPPLEMENTAL_GROUPS, groups));
  // Volumes use only the first group of the namespace.
  if (needsGroups(scc.fsGroup) && first !== undefined)
    resolved.fsGroup = { ...scc.fsGroup, ranges: [{ min: first.min, max: first.min }] };
  if (needsGroups(scc.supplementalGroups)) resolved.supplementalGroups = { ...scc.supplementalGroups, ranges };
  return resolved;
}

function problem(annotation: string, value: string | undefined): string {
  if (value === undefined) return `unable to find annotation ${annotation}`;
  return value === ''
    ? `found annotation ${annotation} but it was empty`
    : `annotation ${annotation} has the invalid value ${JSON.stringify(value)}; use START/SIZE`;
}
