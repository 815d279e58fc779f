/** Kinds that `create` can make from flags. */
import type { FlagSpecs } from '../core/flags.ts';
import type { Verb } from '../port.ts';
import { bool, CONTENT, CREATED, HASH, IMAGE, int, list, PORTS, SUBJECTS, text } from './flags.ts';

const generator = (words: string, summary: string, flags: FlagSpecs, usage = 'NAME'): Verb => ({
  name: words.split(' ').at(-1) ?? '',
  group: 'basic',
  summary,
  usage,
  flags: { ...CREATED, ...flags },
  load: async () => ({ run: (await import('../verbs/create/create.ts')).runGenerator(words) }),
});

const group = (name: string, summary: string, verbs: readonly Verb[]): Verb => ({
  name,
  group: 'basic',
  summary,
  usage: 'NAME',
  flags: {},
  verbs,
});

const CREATE_KINDS: readonly Verb[] = [
  generator('configmap', 'create a config map', { ...CONTENT, immutable: bool('the content must not change') }),
  group('secret', 'create a secret', [
    generator('secret generic', 'create a secret from literals and files', {
      ...CONTENT,
      type: text('TYPE', 'type of the secret'),
    }),
    generator('secret tls', 'create a secret with a certificate', {
      ...HASH,
      cert: text('FILE', 'certificate'),
      key: text('FILE', 'key'),
    }),
    generator('secret docker-registry', 'create a secret for a registry', {
      ...HASH,
      'docker-server': text('HOST', 'registry'),
      'docker-username': text('NAME', 'user'),
      'docker-password': text('TEXT', 'password'),
      'docker-email': text('ADDRESS', 'mail address'),
    }),
  ]),
  generator(
    'deployment',
    'create a deployment',
    {
      ...IMAGE,
      port: int('PORT', 'port of the container'),
      replicas: int('COUNT', 'number of pods', { short: 'r', default: '1' }),
    },
    'NAME --image=IMAGE [-- COMMAND…]',
  ),
  generator(
    'job',
    'create a job',
    { ...IMAGE, from: text('cronjob/NAME', 'cron job to run once') },
    'NAME --image=IMAGE [-- COMMAND…]',
  ),
  generator(
    'cronjob',
    'create a cron job',
    {
      ...IMAGE,
      schedule: text('SPEC', 'schedule, such as "*/5 * * * *"'),
      restart: text('POLICY', 'OnFailure or Never'),
    },
    'NAME --image=IMAGE --schedule=SPEC [-- COMMAND…]',
  ),
  generator('namespace', 'create a namespace', {}),
  generator('serviceaccount', 'create a service account', {}),
  generator('token', 'request a token of a service account', {
    audience: list('NAME', 'audience; may be repeated'),
    duration: text('TIME', 'life time, such as 1h'),
    'bound-object-kind': text('KIND', 'the token ends with an object: Pod, Secret or Node'),
    'bound-object-name': text('NAME', 'name of that object'),
    'bound-object-uid': text('UID', 'uid of that object'),
  }),
  generator('role', 'create a role', {
    verb: list('VERB', 'verb; may be repeated'),
    resource: list('TYPE', 'resource; may be repeated'),
    'resource-name': list('NAME', 'object; may be repeated'),
  }),
  generator('clusterrole', 'create a cluster role', {
    verb: list('VERB', 'verb; may be repeated'),
    resource: list('TYPE', 'resource; may be repeated'),
    'resource-name': list('NAME', 'object; may be repeated'),
    'non-resource-url': list('PATH', 'path; may be repeated'),
    'aggregation-rule': list('KEY=VALUE', 'labels of the roles to aggregate'),
  }),
  generator('rolebinding', 'create a role binding', {
    ...SUBJECTS,
    role: text('NAME', 'role'),
    clusterrole: text('NAME', 'cluster role'),
  }),
  generator('clusterrolebinding', 'create a cluster role binding', {
    ...SUBJECTS,
    clusterrole: text('NAME', 'cluster role'),
  }),
  group('service', 'create a service', [
    generator('service clusterip', 'create a service inside the cluster', {
      ...PORTS,
      clusterip: text('ADDRESS', 'address, or None'),
    }),
    generator('service nodeport', 'create a service on a port of each node', {
      ...PORTS,
      'node-port': int('PORT', 'port of the nodes'),
    }),
    generator('service loadbalancer', 'create a service with an external address', PORTS),
    generator('service externalname', 'create a service for a DNS name', {
      ...PORTS,
      'external-name': text('NAME', 'DNS name'),
    }),
  ]),
  generator('ingress', 'create an ingress', {
    rule: list('HOST/PATH=SERVICE:PORT[,tls[=SECRET]]', 'rule; may be repeated'),
    class: text('NAME', 'ingress class'),
    annotation: list('KEY=VALUE', 'annotation; may be repeated'),
    'default-backend': text('SERVICE:PORT', 'service for all other requests'),
  }),
  generator('quota', 'create a resource quota', {
    hard: list('NAME=QUANTITY', 'limits'),
    scopes: list('NAME', 'scopes'),
  }),
  generator('poddisruptionbudget', 'create a pod disruption budget', {
    selector: text('LABELS', 'labels of the pods'),
    'min-available': text('COUNT', 'pods that must remain'),
    'max-unavailable': text('COUNT', 'pods that may be missing'),
  }),
  generator('priorityclass', 'create a priority class', {
    value: int('NUMBER', 'priority'),
    'global-default': bool('the default of all pods'),
    description: text('TEXT', 'description'),
    'preemption-policy': text('POLICY', 'PreemptLowerPriority or Never'),
  }),
];

const ALIASES: Readonly<Record<string, string>> = {
  cm: 'configmap',
  deploy: 'deployment',
  cj: 'cronjob',
  ns: 'namespace',
  sa: 'serviceaccount',
  svc: 'service',
  ing: 'ingress',
  resourcequota: 'quota',
  pdb: 'poddisruptionbudget',
  pc: 'priorityclass',
};
const withAliases = (verbs: readonly Verb[]): readonly Verb[] => [
  ...verbs,
  ...Object.entries(ALIASES).flatMap(([alias, name]) =>
    verbs.filter((verb) => verb.name === name).map((verb) => ({ ...verb, name: alias, summary: `same as ${name}` })),
  ),
];

export const CREATE_VERBS: readonly Verb[] = withAliases(CREATE_KINDS);
