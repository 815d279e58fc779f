/** The verbs `config …`. */
import type { FlagSpecs } from '../core/flags.ts';
import type { RunVerb, Verb } from '../port.ts';
import { bool, HEADERS, list, text } from './flags.ts';

const verb = (name: string, summary: string, usage: string, flags: FlagSpecs, load: () => Promise<RunVerb>): Verb => ({
  name,
  group: 'settings',
  summary,
  usage,
  flags,
  load: async () => ({ run: await load() }),
});

const EMBED = bool('put the content of files into the kubeconfig');

export const CONFIG_VERBS: readonly Verb[] = [
  verb(
    'view',
    'show the kubeconfig',
    '',
    {
      raw: bool('with secrets'),
      minify: bool('only the current context'),
      flatten: bool('accepted for compatibility'),
      merge: { type: 'bool', default: 'true', help: 'accepted for compatibility' },
      output: text('FORMAT', 'yaml, json or jsonpath=TEMPLATE', { short: 'o', default: 'yaml' }),
      'allow-missing-template-keys': bool('missing fields of a template are no error'),
      'show-managed-fields': bool('accepted for compatibility'),
    },
    async () => (await import('../verbs/config/config.ts')).runView,
  ),
  verb(
    'current-context',
    'show the current context',
    '',
    {},
    async () => (await import('../verbs/config/config.ts')).runCurrentContext,
  ),
  verb(
    'get-contexts',
    'list the contexts',
    '[NAME…]',
    { ...HEADERS, output: text('FORMAT', 'name', { short: 'o' }) },
    async () => (await import('../verbs/config/config.ts')).runGetContexts,
  ),
  verb('get-clusters', 'list the clusters', '', {}, async () =>
    (await import('../verbs/config/config-entries.ts')).runNames('clusters'),
  ),
  verb('get-users', 'list the users', '', {}, async () =>
    (await import('../verbs/config/config-entries.ts')).runNames('users'),
  ),
  ...['use-context', 'use'].map((name) =>
    verb(
      name,
      'choose the current context',
      'NAME',
      {},
      async () => (await import('../verbs/config/config.ts')).runUseContext,
    ),
  ),
  verb(
    'set-context',
    'change a context',
    '(NAME | --current)',
    { current: bool('the current context') },
    async () => (await import('../verbs/config/config.ts')).runSetContext,
  ),
  verb(
    'set-cluster',
    'change a cluster',
    'NAME',
    { 'embed-certs': EMBED, 'proxy-url': text('URL', 'proxy between the client and the server') },
    async () => (await import('../verbs/config/config-entries.ts')).runSetCluster,
  ),
  verb(
    'set-credentials',
    'change a user',
    'NAME',
    {
      'embed-certs': EMBED,
      username: text('NAME', 'user name'),
      password: text('TEXT', 'password'),
      'exec-command': text('COMMAND', 'plug-in that prints credentials'),
      'exec-api-version': text('VERSION', 'version of the plug-in, such as client.authentication.k8s.io/v1'),
      'exec-arg': list('TEXT', 'arguments of the plug-in; may be repeated'),
      'exec-env': list('NAME=VALUE', 'variable of the plug-in; NAME- removes it; may be repeated'),
      'exec-interactive-mode': text('MODE', 'Never, IfAvailable or Always'),
      'exec-provide-cluster-info': bool('pass information about the cluster to the plug-in'),
    },
    async () => (await import('../verbs/config/config-entries.ts')).runSetCredentials,
  ),
  verb(
    'set',
    'change one field',
    'PATH VALUE',
    { 'set-raw-bytes': bool('the value of a -data field is not base64') },
    async () => (await import('../verbs/config/config-entries.ts')).runSet,
  ),
  verb(
    'unset',
    'remove one field or entry',
    'PATH',
    {},
    async () => (await import('../verbs/config/config-entries.ts')).runUnset,
  ),
  verb('delete-cluster', 'remove a cluster', 'NAME', {}, async () =>
    (await import('../verbs/config/config-entries.ts')).runDelete('clusters'),
  ),
  verb('delete-context', 'remove a context', 'NAME', {}, async () =>
    (await import('../verbs/config/config-entries.ts')).runDelete('contexts'),
  ),
  verb('delete-user', 'remove a user', 'NAME', {}, async () =>
    (await import('../verbs/config/config-entries.ts')).runDelete('users'),
  ),
  verb(
    'rename-context',
    'rename a context',
    'NAME NEW-NAME',
    {},
    async () => (await import('../verbs/config/config-entries.ts')).runRenameContext,
  ),
];
