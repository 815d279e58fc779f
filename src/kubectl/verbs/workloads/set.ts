/** `set image|resources|serviceaccount|selector|subject`. Source: k8s.io/kubectl/pkg/cmd/set. */
import { ClientError } from '../../core/errors.ts';
import { fieldAt, listAt } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';
import { pairs as pairsOf } from '../create/create-content.ts';
import { changeObjects, containersOf, type MutableObject, podSpecOf, resourcesAndPairs } from './set-change.ts';

export function runImage(context: VerbContext): Promise<number> {
  const { resources, pairs } = resourcesAndPairs(context.args, 'image');
  if (pairs.length === 0) throw new ClientError('at least one image update is required');
  const images = Object.entries(pairsOf(pairs, 'image'));
  if (images.length > 1 && images.some(([name]) => name === '*'))
    throw new ClientError(
      'all containers are already specified by *, but saw more than one container_name=container_image pairs',
    );
  return changeObjects(context, {
    outcome: 'image updated',
    failure: 'failed to patch image update to pod template:',
    targets: resources,
    edit: (object, label) => {
      const spec = podSpecOf(object, label);
      for (const [name, image] of images) {
        const found = ['containers', 'initContainers'].flatMap((field) => containersOf(spec, name, field));
        if (found.length === 0) throw new ClientError(`unable to find container named "${name}"`);
        for (const container of found) container['image'] = image;
      }
    },
  });
}

const QUANTITY = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$/;

function quantities(text: string): Record<string, string> {
  if (text === '') return {};
  const found: Record<string, string> = {};
  for (const each of text.split(',')) {
    const [name = '', value, more] = each.split('=');
    if (value === undefined || more !== undefined)
      throw new ClientError(`invalid argument syntax ${each}, expected <resource>=<value>`);
    if (!QUANTITY.test(value))
      throw new ClientError(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      );
    found[name] = value;
  }
  return found;
}

export function runResources(context: VerbContext): Promise<number> {
  const { flags, args } = context;
  const [limits, requests] = [quantities(flags.text('limits')), quantities(flags.text('requests'))];
  if (Object.keys(limits).length + Object.keys(requests).length === 0)
    throw new ClientError('you must specify an update to requests or limits (in the form of --requests/--limits)');
  return changeObjects(context, {
    outcome: 'resource requirements updated',
    failure: 'failed to patch resources update to pod template',
    targets: args,
    edit: (object, label) => {
      const pattern = flags.text('containers') || '*';
      const found = containersOf(podSpecOf(object, label), pattern);
      if (found.length === 0) throw new ClientError(`unable to find container named ${pattern}`);
      for (const container of found) {
        const before = (container['resources'] ?? {}) as MutableObject;
        const merged = (field: string, values: Record<string, string>): MutableObject =>
          Object.keys(values).length === 0 ? {} : { [field]: { ...(before[field] as object | undefined), ...values } };
        container['resources'] = { ...before, ...merged('limits', limits), ...merged('requests', requests) };
      }
    },
  });
}

export function runServiceAccount(context: VerbContext): Promise<number> {
  const { args } = context;
  const account = args.at(-1);
  if (account === undefined) throw new ClientError('serviceaccount is required');
  return changeObjects(context, {
    outcome: 'serviceaccount updated',
    failure: 'failed to patch ServiceAccountName',
    always: true,
    targets: args.slice(0, -1),
    edit: (object, label) => {
      Object.assign(podSpecOf(object, label), { serviceAccountName: account, serviceAccount: account });
    },
  });
}

export function runSelector(context: VerbContext): Promise<number> {
  const { args, flags } = context;
  const text = args.at(-1);
  if (text === undefined) throw new ClientError('one or more resources must be specified as <resource> <name>');
  return changeObjects(context, {
    outcome: 'selector updated',
    failure: 'failed to patch selector:',
    always: true,
    targets: args.slice(0, -1),
    edit: (object) => {
      if (object.kind !== 'Service') throw new ClientError('setting a selector is only supported for Services');
      const version = flags.text('resource-version');
      if (version !== '' && version !== object.metadata?.resourceVersion)
        throw new ClientError(
          `the resource version of the object is ${object.metadata?.resourceVersion ?? ''}, not ${version}; read it again`,
        );
      const selector = Object.fromEntries(
        text.split(',').map((each) => {
          const [, key = '', value = ''] = /^([^=!]+)={1,2}([^=]*)$/.exec(each) ?? [];
          if (key === '') throw new ClientError(`the selector ${JSON.stringify(text)} is not valid; use KEY=VALUE,…`);
          return [key, value];
        }),
      );
      object['spec'] = { ...(object['spec'] as object), selector };
    },
  });
}

const RBAC = 'rbac.authorization.k8s.io';

export function runSubject(context: VerbContext): Promise<number> {
  const { flags, args } = context;
  const added: readonly MutableObject[] = [
    ...flags.list('user').map((name) => ({ apiGroup: RBAC, kind: 'User', name })),
    ...flags.list('group').map((name) => ({ apiGroup: RBAC, kind: 'Group', name })),
    ...flags.list('serviceaccount').map((text) => {
      const [namespace = '', name = '', more] = text.split(':');
      if (namespace === '' || name === '' || more !== undefined)
        throw new ClientError('serviceaccount must be <namespace>:<name>');
      return { kind: 'ServiceAccount', name, namespace };
    }),
  ];
  if (added.length === 0) throw new ClientError('you must specify at least one value of user, group or serviceaccount');
  return changeObjects(context, {
    outcome: 'subjects updated',
    failure: 'failed to patch subjects to rolebinding:',
    targets: args,
    edit: (object, label) => {
      if (object.kind !== 'RoleBinding' && object.kind !== 'ClusterRoleBinding')
        throw new ClientError(`${label} setting subjects is only supported for RoleBinding/ClusterRoleBinding`);
      const present = listAt(object, 'subjects');
      const isSame = (left: object, right: object): boolean =>
        ['kind', 'name', 'namespace'].every((field) => fieldAt(left, field) === fieldAt(right, field));
      const missing = added.filter((each) => !present.some((known) => isSame(known, each)));
      if (missing.length > 0) object['subjects'] = [...present, ...missing];
    },
  });
}
