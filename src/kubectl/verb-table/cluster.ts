/** Verbs for nodes, discovery, permissions and the kubeconfig. */
import type { FlagSpecs } from '../core/flags.ts';
import { FILE_FLAGS } from '../manifests.ts';
import type { Verb, VerbContext } from '../port.ts';
import { DRY_RUN_FLAG, OUTPUT_FLAGS } from '../printing.ts';
import { SELECTOR_FLAGS } from '../targets.ts';
import { CONFIG_VERBS } from './config.ts';
import { bool, GRACE, HEADERS, int, list, PRINTED_WRITE, TIMEOUT, text, VALIDATE } from './flags.ts';

const HISTORY: FlagSpecs = {
  history: text('TIME', 'draw the usage of this time until now, such as 24h or 7d'),
  metric: text('NAMES', 'with --history: metrics, separated by commas'),
  output: text('FORMAT', 'with --history: json', { short: 'o' }),
};

export const CLUSTER_VERBS: readonly Verb[] = [
  ...(['cordon', 'uncordon'] as const).map(
    (name): Verb => ({
      name,
      group: 'cluster',
      summary: name === 'cordon' ? 'allow no new pods on a node' : 'allow new pods on a node',
      usage: 'NODE…',
      flags: { 'dry-run': DRY_RUN_FLAG, ...SELECTOR_FLAGS },
      load: async () => {
        const { runCordon, runUncordon } = await import('../verbs/cluster/nodes.ts');
        return { run: name === 'cordon' ? runCordon : runUncordon };
      },
    }),
  ),
  {
    name: 'drain',
    group: 'cluster',
    summary: 'move the pods away from a node',
    usage: 'NODE…',
    flags: {
      'dry-run': DRY_RUN_FLAG,
      ...SELECTOR_FLAGS,
      force: bool('delete pods without a controller'),
      'ignore-daemonsets': bool('leave pods of daemon sets'),
      'delete-emptydir-data': bool('delete pods with emptyDir volumes'),
      'disable-eviction': bool('delete pods without regard to disruption budgets'),
      'pod-selector': text('SELECTOR', 'only these pods'),
      'grace-period': GRACE,
      timeout: TIMEOUT,
      'chunk-size': int('COUNT', 'accepted for compatibility'),
    },
    load: async () => ({ run: (await import('../verbs/cluster/nodes.ts')).runDrain }),
  },
  {
    name: 'taint',
    group: 'cluster',
    summary: 'change taints of nodes',
    usage: 'NODE… KEY[=VALUE]:EFFECT… KEY[:EFFECT]-…',
    flags: {
      ...PRINTED_WRITE,
      ...SELECTOR_FLAGS,
      all: bool('all nodes'),
      overwrite: bool('replace existing taints'),
      validate: VALIDATE,
    },
    load: async () => ({ run: (await import('../verbs/cluster/nodes.ts')).runTaint }),
  },
  {
    name: 'top',
    group: 'cluster',
    summary: 'show the use of CPU and memory',
    usage: '(nodes | pods)',
    flags: { ...HISTORY, 'all-namespaces': bool('pods of all namespaces', 'A') },
    examples: [['the last day of all nodes', 'top --history 24h']],
    load: async () => ({ run: (await import('../verbs/cluster/top-history.ts')).runTop }),
    verbs: (['nodes', 'node', 'pods', 'pod'] as const).map((name) => ({
      name,
      group: 'cluster' as const,
      summary: `use of ${name.replace(/s?$/, 's')}`,
      usage: '[NAME]',
      flags: {
        ...SELECTOR_FLAGS,
        ...HEADERS,
        'sort-by': text('FIELD', 'cpu or memory'),
        'all-namespaces': bool('pods of all namespaces', 'A'),
        containers: bool('one line for each container'),
        sum: bool('add a line with the sum'),
        'show-capacity': bool('compare with the capacity'),
        'use-protocol-buffers': bool('accepted for compatibility'),
        ...HISTORY,
      },
      load: async () => {
        const { runNodes, runPods } = await import('../verbs/cluster/top.ts');
        const isNode = name.startsWith('node');
        const usage = isNode ? runNodes : runPods;
        const history = async (context: VerbContext): Promise<number> =>
          (await import('../verbs/cluster/top-history.ts')).runHistory(context, isNode ? 'node' : 'pod', context.args);
        return { run: (context) => (context.flags.has('history') ? history(context) : usage(context)) };
      },
    })),
  },
  {
    name: 'events',
    group: 'debug',
    summary: 'list events, the latest last',
    usage: '',
    flags: {
      ...OUTPUT_FLAGS,
      ...HEADERS,
      'all-namespaces': bool('events of all namespaces', 'A'),
      for: text('TYPE/NAME', 'events of an object'),
      types: list('TYPE', 'Normal or Warning'),
      watch: bool('continue with new events', 'w'),
      'chunk-size': int('COUNT', 'accepted for compatibility'),
    },
    load: () => import('../verbs/objects/events.ts'),
  },
  {
    name: 'explain',
    group: 'basic',
    summary: 'show the documentation of a kind or field',
    usage: 'TYPE[.FIELD…]',
    flags: {
      recursive: bool('show all fields below', 'R'),
      'api-version': text('VERSION', 'version of the kind'),
      output: text('FORMAT', 'accepted for compatibility', { short: 'o' }),
    },
    load: () => import('../verbs/objects/explain.ts'),
  },
  {
    name: 'api-resources',
    group: 'other',
    summary: 'list the resources of the server',
    usage: '',
    flags: {
      ...HEADERS,
      output: text('FORMAT', 'wide or name', { short: 'o' }),
      'api-group': text('GROUP', 'only this group'),
      namespaced: { type: 'bool', help: 'only resources in namespaces, or with =false only others' },
      verbs: list('VERB', 'only resources with these verbs'),
      categories: list('NAME', 'only resources of these categories'),
      'sort-by': text('FIELD', 'name or kind'),
      cached: bool('accepted for compatibility'),
      'show-managed-fields': bool('accepted for compatibility'),
    },
    load: async () => ({ run: (await import('../verbs/cluster/discovery.ts')).runResources }),
  },
  {
    name: 'api-versions',
    group: 'other',
    summary: 'list the API versions of the server',
    usage: '',
    flags: {},
    load: async () => ({ run: (await import('../verbs/cluster/discovery.ts')).runVersions }),
  },
  {
    name: 'cluster-info',
    group: 'cluster',
    summary: 'show the address of the control plane',
    usage: '',
    flags: {},
    runsBare: true,
    load: async () => ({ run: (await import('../verbs/cluster/discovery.ts')).runClusterInfo }),
    verbs: [
      {
        name: 'dump',
        group: 'cluster',
        summary: 'write objects and logs of namespaces, for a diagnosis',
        usage: '',
        flags: {
          ...OUTPUT_FLAGS,
          output: { ...OUTPUT_FLAGS.output, default: 'json' },
          'output-directory': text('DIRECTORY', 'write files there; default: standard output'),
          namespaces: list('NAME,…', 'namespaces; default: kube-system and that of the context'),
          'all-namespaces': bool('all namespaces', 'A'),
          'pod-running-timeout': text('TIME', 'accepted for compatibility'),
        },
        examples: [['All namespaces as files', 'cluster-info dump -A --output-directory=/tmp/state']],
        load: async () => ({ run: (await import('../verbs/cluster/cluster-dump.ts')).runDump }),
      },
    ],
  },
  {
    name: 'version',
    group: 'other',
    summary: 'show the versions of client and server',
    usage: '',
    flags: { client: bool('only the client'), output: text('FORMAT', 'json or yaml', { short: 'o' }) },
    load: async () => ({ run: (await import('../verbs/cluster/discovery.ts')).runVersion }),
  },
  {
    name: 'auth',
    group: 'cluster',
    summary: 'inspect permissions',
    usage: '',
    flags: {},
    verbs: [
      {
        name: 'can-i',
        group: 'cluster',
        summary: 'check whether an action is allowed',
        usage: 'VERB (TYPE | TYPE/NAME | PATH)',
        flags: {
          ...HEADERS,
          'all-namespaces': bool('in all namespaces', 'A'),
          list: bool('list all permissions'),
          quiet: bool('only the exit code', 'q'),
          subresource: text('NAME', 'subresource, such as log'),
        },
        load: async () => ({ run: (await import('../verbs/cluster/auth.ts')).runCanI }),
      },
      {
        name: 'whoami',
        group: 'cluster',
        summary: 'show the own user and groups',
        usage: '',
        flags: OUTPUT_FLAGS,
        load: async () => ({ run: (await import('../verbs/cluster/auth.ts')).runWhoAmI }),
      },
      {
        name: 'reconcile',
        group: 'cluster',
        summary: 'add missing rules and subjects of roles and bindings',
        usage: '-f FILE',
        flags: {
          ...OUTPUT_FLAGS,
          ...FILE_FLAGS,
          'dry-run': DRY_RUN_FLAG,
          'remove-extra-permissions': bool('remove rules that the files do not have'),
          'remove-extra-subjects': bool('remove subjects that the files do not have'),
        },
        load: () => import('../verbs/cluster/reconcile.ts'),
      },
    ],
  },
  {
    name: 'config',
    group: 'settings',
    summary: 'show and change the kubeconfig',
    usage: '',
    flags: {},
    verbs: CONFIG_VERBS,
  },
];
