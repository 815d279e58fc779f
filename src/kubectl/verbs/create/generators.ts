/** Objects that `create` makes from flags. Source: k8s.io/kubectl/pkg/cmd/create. */

import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import type { AnyObject } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';
import type { Session } from '../../session.ts';
import { currentObject, oneTarget } from '../../targets.ts';
import { configMap, nameOf, pairs, secretDockerRegistry, secretGeneric, secretTls } from './create-content.ts';

type Generator = (context: VerbContext, session: Session) => Promise<AnyObject> | AnyObject;

export const command = ({ args, dashAt }: VerbContext): readonly string[] =>
  dashAt === undefined ? [] : args.slice(dashAt);

export function nameArgument(context: VerbContext): string {
  const { args, dashAt } = context;
  return nameOf({ ...context, args: dashAt === undefined ? args : args.slice(0, dashAt) });
}

export function images({ flags }: VerbContext): readonly string[] {
  const found = flags.list('image');
  if (found.length === 0) throw new ClientError('required flag(s) "image" not set');
  return found;
}

/** Name of a container, derived from its image as in kubectl. */
const containerName = (image: string): string =>
  (image.split('/').at(-1) ?? '').split(/[:@]/)[0]?.toLowerCase().replaceAll('_', '-') ?? '';

function deployment(context: VerbContext): AnyObject {
  const { flags } = context;
  const name = nameArgument(context);
  const all = images(context);
  const arguments_ = command(context);
  if (all.length > 1 && arguments_.length > 0)
    throw new ClientError('cannot specify multiple --image options and command');
  const port = flags.int('port');
  const labels = { app: name };
  const containers = all.map((image) => ({
    image,
    name: containerName(image),
    resources: {},
    ...(arguments_.length === 0 ? {} : { command: [...arguments_] }),
    ...(port > 0 ? { ports: [{ containerPort: port }] } : {}),
  }));
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels },
    spec: {
      replicas: flags.has('replicas') ? flags.int('replicas') : 1,
      selector: { matchLabels: labels },
      strategy: {},
      template: { metadata: { labels }, spec: { containers } },
    },
    status: {},
  };
}

async function job(context: VerbContext, session: Session): Promise<AnyObject> {
  const { flags } = context;
  const name = nameArgument(context);
  const from = flags.text('from');
  if (from !== '') {
    const target = await oneTarget(session, [from], 'cronjobs');
    const cronJob = await currentObject(session, target);
    const template = (
      cronJob['spec'] as { jobTemplate?: { spec?: unknown; metadata?: AnyObject['metadata'] } } | undefined
    )?.jobTemplate;
    if (template === undefined)
      throw new ClientError(
        `unknown object type *${(cronJob.apiVersion ?? '').split('/').at(-1)}.${cronJob.kind ?? ''}`,
      );
    return {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: {
        name,
        ...(template.metadata?.labels === undefined ? {} : { labels: template.metadata.labels }),
        annotations: { 'cronjob.kubernetes.io/instantiate': 'manual', ...template.metadata?.annotations },
        ownerReferences: [
          {
            apiVersion: 'batch/v1',
            kind: 'CronJob',
            name: target.name,
            uid: cronJob.metadata?.uid ?? '',
            controller: true,
          },
        ],
      },
      spec: withTemplateMetadata(template.spec),
      status: {},
    };
  }
  if (flags.list('image').length === 0) throw new ClientError('either --image or --from must be specified');
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: jobSpec(context, name, 'Never'), status: {} };
}

/** The spec of a job whose pod template has metadata, which kubectl always prints. */
function withTemplateMetadata(spec: unknown): unknown {
  const { template, ...rest } = (spec ?? {}) as { template?: object };
  return { ...rest, template: { metadata: {}, ...template } };
}

function jobSpec(context: VerbContext, name: string, restartPolicy: string): object {
  const [image = ''] = images(context);
  const words = command(context);
  return {
    template: {
      metadata: {},
      spec: {
        containers: [{ image, name, resources: {}, ...(words.length === 0 ? {} : { command: [...words] }) }],
        restartPolicy,
      },
    },
  };
}

function cronJob(context: VerbContext): AnyObject {
  const { flags } = context;
  const name = nameArgument(context);
  if (flags.text('schedule') === '') throw new ClientError('required flag(s) "schedule" not set');
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name },
    spec: {
      schedule: flags.text('schedule'),
      jobTemplate: { metadata: { name }, spec: jobSpec(context, name, flags.text('restart') || 'OnFailure') },
    },
    status: {},
  };
}

function rules({ flags }: VerbContext, session: Session): Promise<object[]> {
  return (async () => {
    const verbs = flags.list('verb');
    if (verbs.length === 0) throw new ClientError('at least one verb must be specified');
    const urls = flags.list('non-resource-url');
    if (urls.length > 0) return [{ nonResourceURLs: [...urls], verbs: [...verbs] }];
    if (flags.list('resource').length === 0) throw new ClientError('at least one resource must be specified');
    const index = await session.resources();
    const byGroup = new Map<string, string[]>();
    for (const text of flags.list('resource')) {
      const [type = '', subresource] = text.split('/');
      const info = type === '*' ? { group: '*', name: '*' } : index.get(type);
      byGroup.set(info.group, [
        ...(byGroup.get(info.group) ?? []),
        subresource === undefined ? info.name : `${info.name}/${subresource}`,
      ]);
    }
    const resourceNames = flags.list('resource-name');
    return [...byGroup].map(([group, resources]) => ({
      apiGroups: [group],
      ...(resourceNames.length === 0 ? {} : { resourceNames: [...resourceNames] }),
      resources,
      verbs: [...verbs],
    }));
  })();
}

const role =
  (kind: 'Role' | 'ClusterRole'): Generator =>
  async (context, session) => {
    const aggregation = context.flags.all('aggregation-rule').flatMap((each) => each.split(','));
    const hasRules = ['verb', 'resource', 'resource-name', 'non-resource-url'].some((flag) => context.flags.has(flag));
    if (aggregation.length > 0 && hasRules)
      throw new ClientError(
        'aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames',
      );
    return {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind,
      metadata: { name: nameOf(context) },
      ...(aggregation.length > 0
        ? {
            aggregationRule: { clusterRoleSelectors: [{ matchLabels: pairs(aggregation, 'aggregation-rule') }] },
            rules: [],
          }
        : { rules: await rules(context, session) }),
    };
  };

const RBAC = 'rbac.authorization.k8s.io';

const binding =
  (kind: 'RoleBinding' | 'ClusterRoleBinding'): Generator =>
  (context) => {
    const { flags } = context;
    const clusterRole = flags.text('clusterrole');
    const ownRole = flags.text('role');
    if ((clusterRole === '') === (ownRole === ''))
      throw new ClientError(
        kind === 'RoleBinding'
          ? 'exactly one of clusterrole or role must be specified'
          : 'clusterrole must be specified',
      );
    const subjects = [
      ...flags.list('user').map((name) => ({ apiGroup: RBAC, kind: 'User', name })),
      ...flags.list('group').map((name) => ({ apiGroup: RBAC, kind: 'Group', name })),
      ...flags.list('serviceaccount').map((text) => {
        const [namespace = '', name = '', more] = text.split(':');
        if (namespace === '' || name === '' || more !== undefined)
          throw new ClientError('serviceaccount must be <namespace>:<name>');
        return { kind: 'ServiceAccount', name, namespace };
      }),
    ];
    return {
      apiVersion: `${RBAC}/v1`,
      kind,
      metadata: { name: nameOf(context) },
      roleRef: { apiGroup: RBAC, kind: clusterRole === '' ? 'Role' : 'ClusterRole', name: clusterRole || ownRole },
      ...(subjects.length === 0 ? {} : { subjects }),
    };
  };

const service =
  (type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'): Generator =>
  (context) => {
    const { flags } = context;
    const name = nameOf(context);
    const tcp = flags.list('tcp');
    if (tcp.length === 0 && type !== 'ExternalName' && flags.text('clusterip') !== 'None')
      throw new ClientError('at least one tcp port specifier must be provided');
    const ports = tcp.map((text) => {
      const [port = '', target = port] = text.split(':');
      const number = (value: string): number | string => (/^\d+$/.test(value) ? Number(value) : value);
      if (!/^\d+$/.test(port)) throw new ClientError(`invalid port ${JSON.stringify(port)}: must be a number`);
      const nodePort = flags.int('node-port');
      return {
        name: text.replace(':', '-'),
        port: Number(port),
        protocol: 'TCP',
        targetPort: number(target),
        ...(nodePort > 0 ? { nodePort } : {}),
      };
    });
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, labels: { app: name } },
      spec: {
        type,
        selector: { app: name },
        ...(ports.length === 0 ? {} : { ports }),
        ...(type === 'ExternalName' ? { externalName: flags.text('external-name') } : {}),
        ...(flags.text('clusterip') === '' ? {} : { clusterIP: flags.text('clusterip') }),
      },
      status: { loadBalancer: {} },
    };
  };

const simple =
  (apiVersion: string, kind: string, spec: (context: VerbContext) => object = () => ({})): Generator =>
  (context) => ({
    apiVersion,
    kind,
    metadata: { name: nameOf(context) },
    ...spec(context),
  });

function quota({ flags }: VerbContext): object {
  const hard = flags.text('hard') === '' ? {} : pairs(flags.list('hard'), 'hard');
  const scopes = flags.list('scopes');
  return {
    spec: {
      ...(Object.keys(hard).length === 0 ? {} : { hard }),
      ...(scopes.length === 0 ? {} : { scopes: [...scopes] }),
    },
    status: {},
  };
}

function disruptionBudget({ flags }: VerbContext): object {
  const number = (text: string): number | string => (/^\d+$/.test(text) ? Number(text) : text);
  const minimum = flags.text('min-available');
  const maximum = flags.text('max-unavailable');
  if (flags.text('selector') === '') throw new ClientError('a selector must be specified');
  if ((minimum === '') === (maximum === ''))
    throw new ClientError('one of min-available or max-unavailable must be specified');
  const matchLabels = pairs(flags.text('selector').split(','), 'selector');
  return {
    spec: {
      ...(minimum === '' ? { maxUnavailable: number(maximum) } : { minAvailable: number(minimum) }),
      selector: { matchLabels },
    },
    status: { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 },
  };
}

function ingress({ flags, args }: VerbContext): object {
  const specs = flags.all('rule').map((text) => {
    const [, host = '', path = '', backend = '', port = '', tls] =
      /^([^/=]*)(\/[^=]*)=([^:,]+):([^,]+)(?:,tls(?:=(.*))?)?$/.exec(text) ?? [];
    if (backend === '')
      throw new ClientError(`rule ${text} is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]`);
    const isPrefix = path.endsWith('*');
    return {
      host,
      tls: /,tls/.test(text) ? (tls ?? '') : undefined,
      path: {
        backend: { service: { name: backend, port: /^\d+$/.test(port) ? { number: Number(port) } : { name: port } } },
        path: isPrefix ? path.slice(0, -1) : path,
        pathType: isPrefix ? 'Prefix' : 'Exact',
      },
    };
  });
  const [name = '', port = ''] = flags.text('default-backend').split(':');
  if (specs.length === 0 && name === '')
    throw new ClientError(
      'not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a list of rules (which catch specific paths)',
    );
  const hosts = [...new Set(specs.map(({ host }) => host))];
  const tls = specs.filter((each) => each.tls !== undefined);
  const annotations = pairs(flags.list('annotation'), 'annotation');
  return {
    ...(Object.keys(annotations).length === 0 ? {} : { metadata: { annotations, name: args[0] } }),
    spec: {
      ...(flags.text('class') === '' ? {} : { ingressClassName: flags.text('class') }),
      ...(name === ''
        ? {}
        : {
            defaultBackend: { service: { name, port: /^\d+$/.test(port) ? { number: Number(port) } : { name: port } } },
          }),
      ...(specs.length === 0
        ? {}
        : {
            rules: hosts.map((host) => ({
              ...(host === '' ? {} : { host }),
              http: { paths: specs.filter((each) => each.host === host).map(({ path }) => path) },
            })),
          }),
      ...(tls.length === 0
        ? {}
        : {
            tls: [...new Set(tls.map((each) => each.tls))].map((secretName) => ({
              hosts: [...new Set(tls.filter((each) => each.tls === secretName).map(({ host }) => host))].filter(
                (host) => host !== '',
              ),
              ...(secretName === '' ? {} : { secretName }),
            })),
          }),
    },
    status: { loadBalancer: {} },
  };
}

function durationOf(text: string): number {
  try {
    return parseGoDuration(text);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new ClientError(
      `invalid argument "${text}" for "--duration" flag: ${problem}\nSee 'kubectl create token --help' for usage.`,
    );
  }
}

function boundObject(flags: VerbContext['flags']): object {
  const kind = flags.text('bound-object-kind');
  if (!['Pod', 'Secret', 'Node'].includes(kind))
    throw new ClientError(`supported --bound-object-kind values are Node, Pod, Secret, not ${JSON.stringify(kind)}`);
  const uid = flags.text('bound-object-uid');
  return { apiVersion: 'v1', kind, name: flags.text('bound-object-name'), ...(uid === '' ? {} : { uid }) };
}

/** Object generators by the words after `create`. `token` generates a request for a subresource. */
export const GENERATORS: Readonly<Record<string, Generator>> = {
  configmap: configMap,
  'secret generic': secretGeneric,
  'secret tls': secretTls,
  'secret docker-registry': secretDockerRegistry,
  deployment,
  job,
  cronjob: cronJob,
  role: role('Role'),
  clusterrole: role('ClusterRole'),
  rolebinding: binding('RoleBinding'),
  clusterrolebinding: binding('ClusterRoleBinding'),
  'service clusterip': service('ClusterIP'),
  'service nodeport': service('NodePort'),
  'service loadbalancer': service('LoadBalancer'),
  'service externalname': service('ExternalName'),
  namespace: simple('v1', 'Namespace', () => ({ spec: {}, status: {} })),
  serviceaccount: simple('v1', 'ServiceAccount'),
  quota: simple('v1', 'ResourceQuota', quota),
  poddisruptionbudget: simple('policy/v1', 'PodDisruptionBudget', disruptionBudget),
  priorityclass: simple('scheduling.k8s.io/v1', 'PriorityClass', ({ flags }) => ({
    value: flags.int('value'),
    globalDefault: flags.bool('global-default') || undefined,
    description: flags.text('description') || undefined,
    preemptionPolicy: flags.text('preemption-policy') || 'PreemptLowerPriority',
  })),
  ingress: simple('networking.k8s.io/v1', 'Ingress', ingress),
  token: simple('v1', 'ServiceAccount', ({ flags }) => ({
    spec: {
      audiences: flags.list('audience').length === 0 ? undefined : [...flags.list('audience')],
      expirationSeconds:
        flags.text('duration') === '' ? undefined : Math.round(durationOf(flags.text('duration')) / 1_000),
      ...(flags.text('bound-object-name') === '' ? {} : { boundObjectRef: boundObject(flags) }),
    },
  })),
};
