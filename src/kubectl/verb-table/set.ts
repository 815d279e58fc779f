/** The verbs `set …`, `autoscale`, `certificate` and `plugin`. */
import type { FlagSpecs } from '../core/flags.ts';
import { FILE_FLAGS } from '../manifests.ts';
import type { RunVerb, Verb } from '../port.ts';
import { OUTPUT_FLAGS } from '../printing.ts';
import { TARGET_FLAGS } from '../targets.ts';
import { bool, int, list, OBJECTS, PRINTED_WRITE, SUBJECTS, text } from './flags.ts';

const setVerb = (
  name: string,
  summary: string,
  usage: string,
  flags: FlagSpecs,
  load: () => Promise<{ readonly run: RunVerb }>,
): Verb => ({
  name,
  group: 'basic',
  summary,
  usage,
  flags: {
    ...PRINTED_WRITE,
    ...TARGET_FLAGS,
    local: bool('change the objects of the files without a server'),
    ...flags,
  },
  load,
});

const CONTAINERS = text('PATTERN', 'names of containers; may contain *', { short: 'c', default: '*' });
const serviceAccount = (name: string): Verb =>
  setVerb(name, 'set the service account', `${OBJECTS} ACCOUNT`, {}, async () => ({
    run: (await import('../verbs/workloads/set.ts')).runServiceAccount,
  }));

const SET_VERBS: readonly Verb[] = [
  setVerb('image', 'set images of containers', `${OBJECTS} CONTAINER=IMAGE…`, {}, async () => ({
    run: (await import('../verbs/workloads/set.ts')).runImage,
  })),
  setVerb(
    'env',
    'set environment variables of containers',
    `${OBJECTS} NAME=VALUE… NAME-…`,
    {
      containers: CONTAINERS,
      env: list('NAME=VALUE', 'a variable; - reads lines of stdin', 'e'),
      from: text('TYPE/NAME', 'config map or secret whose keys become variables'),
      keys: list('KEY', 'only these keys of --from'),
      prefix: text('TEXT', 'before the names of --from'),
      list: bool('show the variables'),
      resolve: bool('with --list, show the values of references'),
      overwrite: { type: 'bool', default: 'true', help: 'replace existing values' },
    },
    async () => ({ run: (await import('../verbs/workloads/set-env.ts')).runEnv }),
  ),
  setVerb(
    'resources',
    'set requests and limits of containers',
    `${OBJECTS} --requests=… --limits=…`,
    {
      containers: CONTAINERS,
      limits: text('NAME=QUANTITY,…', 'limits'),
      requests: text('NAME=QUANTITY,…', 'requests'),
    },
    async () => ({ run: (await import('../verbs/workloads/set.ts')).runResources }),
  ),
  setVerb(
    'selector',
    'set the selector of a service',
    `${OBJECTS} KEY=VALUE,…`,
    { 'resource-version': text('VERSION', 'only if the object has this version') },
    async () => ({ run: (await import('../verbs/workloads/set.ts')).runSelector }),
  ),
  serviceAccount('serviceaccount'),
  serviceAccount('sa'),
  setVerb('subject', 'add subjects to a binding', OBJECTS, SUBJECTS, async () => ({
    run: (await import('../verbs/workloads/set.ts')).runSubject,
  })),
];

export const SETTING_VERBS: readonly Verb[] = [
  { name: 'set', group: 'basic', summary: 'set fields of objects', usage: '', flags: {}, verbs: SET_VERBS },
  {
    name: 'autoscale',
    group: 'deploy',
    summary: 'scale a workload by its load',
    usage: '(-f FILE | TYPE NAME) --max=COUNT',
    flags: {
      ...PRINTED_WRITE,
      ...FILE_FLAGS,
      'field-manager': text('NAME', 'name of the owner of the fields', { default: 'kubectl-autoscale' }),
      min: int('COUNT', 'fewest pods', { default: '-1' }),
      max: int('COUNT', 'most pods', { default: '-1' }),
      cpu: text('TARGET', 'share of the requests, such as 70%, or amount, such as 500m'),
      memory: text('TARGET', 'share of the requests, such as 60%, or amount, such as 200Mi'),
      name: text('NAME', 'name of the autoscaler'),
      'save-config': bool('accepted for compatibility'),
    },
    load: () => import('../verbs/create/autoscale.ts'),
  },
  {
    name: 'certificate',
    group: 'cluster',
    summary: 'approve or deny signing requests',
    usage: '',
    flags: {},
    verbs: (['approve', 'deny'] as const).map((name) => ({
      name,
      group: 'cluster',
      summary: `${name} a certificate signing request`,
      usage: '(-f FILE | NAME…)',
      flags: { ...OUTPUT_FLAGS, ...FILE_FLAGS, force: bool('write the request even if it is decided') },
      load: async () => {
        const { runApprove, runDeny } = await import('../verbs/cluster/certificate.ts');
        return { run: name === 'approve' ? runApprove : runDeny };
      },
    })),
  },
  {
    name: 'plugin',
    group: 'other',
    summary: 'list plug-ins: executables kubectl-NAME on PATH',
    usage: '',
    flags: {},
    verbs: [
      {
        name: 'list',
        group: 'other',
        summary: 'list the plug-ins on PATH',
        usage: '',
        flags: { 'name-only': bool('names without directories') },
        load: () => import('../plugins.ts'),
      },
    ],
  },
];
