/** `auth reconcile`: adds missing rules and subjects. Source: k8s.io/component-helpers/auth/rbac/reconciliation. */
import { isApiError } from '../../../api/meta/status.ts';
import { type AnyObject, fieldAt, listAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { requiredManifests } from '../../manifests.ts';
import type { VerbContext } from '../../port.ts';
import { dryRunOf, objectPrinter, printOutcome } from '../../printing.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { readIfPresent } from '../apply/client-side-apply.ts';

type Fields = Readonly<Record<string, unknown>>;

const RULES = ['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const;
const ROLES: ReadonlySet<string> = new Set(['Role', 'ClusterRole']);
const BINDINGS: ReadonlySet<string> = new Set(['RoleBinding', 'ClusterRoleBinding']);

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    for (const { object } of await requiredManifests(context, 'reconcile')) {
      const isRbac = object.apiVersion?.startsWith('rbac.authorization.k8s.io/') === true;
      // Objects of other kinds are ignored, as in kubectl.
      if (isRbac && ROLES.has(object.kind ?? '')) await reconcile(session, object, 'rules');
      else if (isRbac && BINDINGS.has(object.kind ?? '')) await reconcile(session, object, 'subjects');
    }
    return 0;
  });

async function reconcile(session: Session, wanted: AnyObject, field: 'rules' | 'subjects'): Promise<void> {
  const { context } = session;
  const { resource, namespace } = await session.place(wanted);
  const path = pathOf(resource, namespace, wanted.metadata?.name ?? '');
  const live = await readIfPresent(session, path);
  const plan = planOf(live, wanted, field, context);
  report(context, plan, field);
  const placed = { ...wanted, metadata: { ...wanted.metadata, ...(namespace === undefined ? {} : { namespace }) } };
  let object: AnyObject = live === undefined ? placed : { ...live, ...plan.changed };
  const query = { dryRun: dryRunOf(context.flags) === 'server' ? 'All' : undefined };
  if (plan.operation !== undefined && dryRunOf(context.flags) !== 'client') {
    if (plan.operation === 'recreate') await session.send('DELETE', path, { query });
    if (plan.operation === 'update') object = await session.send('PUT', path, { query, body: object });
    else {
      if (namespace !== undefined) await ensureNamespace(session, namespace);
      object = await session.send('POST', pathOf(resource, namespace), { query, body: placed });
    }
  }
  if ((await objectPrinter(context)) === undefined) return printOutcome(context, object, 'reconciled');
  return printOutcome(context, object, '');
}

interface Plan {
  readonly operation: 'create' | 'update' | 'recreate' | undefined;
  readonly missing: readonly Fields[];
  readonly extra: readonly Fields[];
  /** Fields of the live object to replace. */
  readonly changed: Fields;
}

function planOf(
  live: AnyObject | undefined,
  wanted: AnyObject,
  field: 'rules' | 'subjects',
  context: VerbContext,
): Plan {
  const expected: readonly Fields[] = listAt(wanted, field);
  if (live === undefined) return { operation: 'create', missing: expected, extra: [], changed: {} };
  const same = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);
  if (
    field === 'subjects' &&
    !['kind', 'name'].every((key) => same(fieldAt(live, 'roleRef', key), fieldAt(wanted, 'roleRef', key)))
  )
    return { operation: 'recreate', missing: expected, extra: [], changed: {} };
  const present: readonly Fields[] = listAt(live, field);
  const removes = context.flags.bool(field === 'rules' ? 'remove-extra-permissions' : 'remove-extra-subjects');
  const missing = field === 'rules' ? uncovered(present, expected) : without(expected, present);
  const found = field === 'rules' ? uncovered(expected, present) : without(present, expected);
  const extra = removes ? found : [];
  const after =
    extra.length === 0
      ? [...present, ...missing]
      : field === 'rules'
        ? expected
        : [...without(present, extra), ...missing];
  const metadata = {
    ...live.metadata,
    ...mergedMap(live, wanted, 'labels'),
    ...mergedMap(live, wanted, 'annotations'),
  };
  const isSame = missing.length === 0 && extra.length === 0 && same(metadata, live.metadata);
  return { operation: isSame ? undefined : 'update', missing, extra, changed: { [field]: after, metadata } };
}

function mergedMap(live: AnyObject, wanted: AnyObject, key: 'labels' | 'annotations'): object {
  const added = wanted.metadata?.[key];
  return added === undefined ? {} : { [key]: { ...live.metadata?.[key], ...added } };
}

const subjectKey = (subject: Fields): string =>
  ['kind', 'name', 'namespace'].map((key) => String(subject[key] ?? '')).join('\0');
const without = (list: readonly Fields[], others: readonly Fields[]): Fields[] =>
  list.filter((each) => !others.some((other) => subjectKey(other) === subjectKey(each)));

const texts = (rule: Fields, key: string): readonly string[] =>
  Array.isArray(rule[key]) ? (rule[key] as string[]) : [];

/** Single permissions of `rules` that the rules `owner` do not grant. */
function uncovered(owner: readonly Fields[], rules: readonly Fields[]): Fields[] {
  return rules.flatMap(single).filter((rule) => !owner.some((each) => covers(each, rule)));
}

/** Splits a rule into one rule for each verb, group, resource and name. */
function single(rule: Fields): Fields[] {
  const names = texts(rule, 'resourceNames');
  return texts(rule, 'verbs').flatMap((verb) => [
    ...texts(rule, 'nonResourceURLs').map((url) => ({ verbs: [verb], nonResourceURLs: [url] })),
    ...texts(rule, 'apiGroups').flatMap((group) =>
      texts(rule, 'resources').flatMap((resource): Fields[] => {
        const simple = { verbs: [verb], apiGroups: [group], resources: [resource] };
        return names.length === 0 ? [simple] : names.map((name) => ({ ...simple, resourceNames: [name] }));
      }),
    ),
  ]);
}

function covers(owner: Fields, rule: Fields): boolean {
  const has = (key: string): boolean => {
    const [wanted] = texts(rule, key);
    const owned = texts(owner, key);
    return wanted === undefined || owned.includes('*') || owned.includes(wanted);
  };
  const names = texts(owner, 'resourceNames');
  const [name] = texts(rule, 'resourceNames');
  const [url] = texts(rule, 'nonResourceURLs');
  if (url !== undefined)
    return (
      has('verbs') &&
      texts(owner, 'nonResourceURLs').some((each) =>
        each.endsWith('*') ? url.startsWith(each.slice(0, -1)) : each === url,
      )
    );
  return (
    has('verbs') &&
    has('apiGroups') &&
    has('resources') &&
    (names.length === 0 || (name !== undefined && names.includes(name)))
  );
}

function report({ io }: VerbContext, { operation, missing, extra }: Plan, field: 'rules' | 'subjects'): void {
  if (operation !== undefined) io.err(`\treconciliation required ${operation}\n`);
  for (const [title, list] of [
    [`missing ${field} added`, missing],
    [`extra ${field} removed`, extra],
  ] as const)
    if (list.length > 0)
      io.err(
        `\t${title}:\n${list.map((each) => `\t\t${field === 'rules' ? ruleText(each) : subjectText(each)}\n`).join('')}`,
      );
}

/** Text of a rule in Go's `%+v` format. */
const ruleText = (rule: Fields): string =>
  `{${RULES.map((key) => `${key === 'apiGroups' ? 'APIGroups' : key[0]?.toUpperCase() + key.slice(1)}:[${texts(rule, key).join(' ')}]`).join(' ')}}`;
const subjectText = (subject: Fields): string =>
  `{Kind:${subject['kind']} APIGroup:${subject['apiGroup'] ?? ''} Name:${subject['name']} Namespace:${subject['namespace'] ?? ''}}`;

async function ensureNamespace(session: Session, name: string): Promise<void> {
  const namespaces = await session.resource('namespaces');
  if ((await readIfPresent(session, pathOf(namespaces, undefined, name))) !== undefined) return;
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await session.send('POST', pathOf(namespaces, undefined), { body }).catch((error: unknown) => {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  });
}
