/**
 * Parses upstream's AdmissionConfiguration (`--admission-control-config-file`): plug-in configuration, in the file or
 * in referenced files.
 */

import type { LimitedResource } from '../../api/quota/check.ts';
import { CodedError } from '../../base/errors.ts';
import { labelsOfText } from '../../base/selector.ts';
import {
  type Cursor,
  checkedString,
  dictionary,
  type Field,
  integer,
  list,
  object,
  oneOf,
  parseConfig,
  string,
} from '../../wire/strict-yaml.ts';
import {
  LEVEL_MESSAGE,
  type Level,
  type LevelVersion,
  parseLevel,
  parseVersion,
  VERSION_MESSAGE,
} from '../core/pod-security/policy.ts';
import type { AdmissionSettings } from '../index.ts';

/** Key of the cluster-wide default in the map of node selectors by namespace. */
const CLUSTER_DEFAULT = 'clusterDefaultNodeSelector';

/** Returns the raw field, because its meaning depends on another field. */
const undecided: Field<Cursor> = { parse: (at) => at };

const file = object(
  {
    apiVersion: oneOf('apiserver.config.k8s.io/v1', 'apiserver.k8s.io/v1alpha1', 'apiserver.config.k8s.io/v1alpha1'),
    kind: oneOf('AdmissionConfiguration'),
    plugins: list(object({ name: string(), path: string(), configuration: undecided }, ['name'])),
  },
  ['apiVersion', 'kind'],
);

const level = (): Field<Level> => {
  const text = checkedString((value) => (parseLevel(value) === undefined ? LEVEL_MESSAGE : undefined));
  return { parse: (at) => parseLevel(text.parse(at)) ?? at.fail(LEVEL_MESSAGE) };
};
const version = (): Field<LevelVersion['version']> => {
  const text = checkedString((value) => (parseVersion(value) === undefined ? VERSION_MESSAGE : undefined));
  return { parse: (at) => parseVersion(text.parse(at)) ?? at.fail(VERSION_MESSAGE) };
};

const podSecurityFile = object(
  {
    apiVersion: oneOf(
      'pod-security.admission.config.k8s.io/v1',
      'pod-security.admission.config.k8s.io/v1beta1',
      'pod-security.admission.config.k8s.io/v1alpha1',
    ),
    kind: oneOf('PodSecurityConfiguration'),
    defaults: object({
      enforce: level(),
      'enforce-version': version(),
      audit: level(),
      'audit-version': version(),
      warn: level(),
      'warn-version': version(),
    }),
    exemptions: object({ usernames: list(string()), namespaces: list(string()), runtimeClasses: list(string()) }),
  },
  ['apiVersion', 'kind'],
);

function podSecurity(at: Cursor): AdmissionSettings {
  const { defaults = {}, exemptions = {} } = podSecurityFile.parse(at);
  const mode = (name: 'enforce' | 'audit' | 'warn'): LevelVersion => ({
    level: defaults[name] ?? 'privileged',
    version: defaults[`${name}-version`] ?? 'latest',
  });
  return {
    podSecurity: {
      defaults: { enforce: mode('enforce'), audit: mode('audit'), warn: mode('warn') },
      exemptions: {
        usernames: new Set(exemptions.usernames),
        namespaces: new Set(exemptions.namespaces),
        runtimeClasses: new Set(exemptions.runtimeClasses),
      },
    },
  };
}

const quotaFile = object(
  {
    apiVersion: oneOf(
      'apiserver.config.k8s.io/v1',
      'apiserver.config.k8s.io/v1beta1',
      'resourcequota.admission.k8s.io/v1beta1',
      'resourcequota.admission.k8s.io/v1alpha1',
    ),
    kind: oneOf('ResourceQuotaConfiguration', 'Configuration'),
    limitedResources: list(
      object(
        {
          apiGroup: string(),
          resource: string(),
          matchContains: list(string()),
          matchScopes: list(
            object(
              {
                scopeName: string(),
                operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'),
                values: list(string()),
              },
              ['scopeName', 'operator'],
            ),
          ),
        },
        ['resource'],
      ),
    ),
  },
  ['apiVersion', 'kind'],
);

function resourceQuota(at: Cursor): AdmissionSettings {
  const limited = new Map<string, LimitedResource[]>();
  for (const each of quotaFile.parse(at).limitedResources ?? []) {
    const key = `${each.resource}.${each.apiGroup ?? ''}`;
    const { matchContains = [], matchScopes = [] } = each;
    limited.set(key, [...(limited.get(key) ?? []), { matchContains, matchScopes }]);
  }
  return { limitedResources: limited };
}

const selectorText = checkedString((value) =>
  labelsOfText(value) === undefined ? 'write labels such as key=value,key=value' : undefined,
);

function podNodeSelector(at: Cursor): AdmissionSettings {
  const file = object({ podNodeSelectorPluginConfig: dictionary(selectorText) }, ['podNodeSelectorPluginConfig']);
  const { podNodeSelectorPluginConfig: selectors } = file.parse(at);
  const { [CLUSTER_DEFAULT]: clusterDefault = {}, ...whitelists } = Object.fromEntries(
    [...selectors].map(([name, text]) => [name, labelsOfText(text) ?? {}]),
  );
  return { podNodeSelector: { clusterDefault, whitelists: new Map(Object.entries(whitelists)) } };
}

const toleration = object({
  key: string(),
  operator: oneOf('Exists', 'Equal'),
  value: string(),
  effect: oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
  tolerationSeconds: integer(0, Number.MAX_SAFE_INTEGER),
});
const podTolerationFile = object(
  {
    apiVersion: oneOf('podtolerationrestriction.admission.k8s.io/v1alpha1'),
    kind: oneOf('Configuration'),
    default: list(toleration),
    whitelist: list(toleration),
  },
  ['apiVersion', 'kind'],
);

function podTolerations(at: Cursor): AdmissionSettings {
  const { default: defaults = [], whitelist = [] } = podTolerationFile.parse(at);
  return { podTolerations: { defaults, whitelist } };
}

const MAX_LIMIT = 1_000_000;
const DEFAULT_CACHE = 4096;
const eventFile = object(
  {
    apiVersion: oneOf('eventratelimit.admission.k8s.io/v1alpha1'),
    kind: oneOf('Configuration'),
    limits: list(
      object(
        {
          type: oneOf('Server', 'Namespace', 'User', 'SourceAndObject'),
          qps: integer(1, MAX_LIMIT),
          burst: integer(1, MAX_LIMIT),
          cacheSize: integer(0, MAX_LIMIT),
        },
        ['type', 'qps', 'burst'],
      ),
    ),
  },
  ['apiVersion', 'kind', 'limits'],
);

function eventRateLimit(at: Cursor): AdmissionSettings {
  const { limits } = eventFile.parse(at);
  return {
    eventLimits: limits.map(({ cacheSize = 0, ...limit }) => ({ ...limit, cacheSize: cacheSize || DEFAULT_CACHE })),
  };
}

const projectFile = object(
  {
    apiVersion: oneOf('project.openshift.io/v1', 'v1'),
    kind: oneOf('ProjectRequestLimitConfig'),
    limits: list(object({ selector: dictionary(string()), maxProjects: integer(0, MAX_LIMIT) })),
  },
  ['apiVersion', 'kind', 'limits'],
);

/**
 * Limits of projects per user. Source: OpenShift's documentation, "Limiting number of self-provisioned projects per
 * user".
 */
function projectRequestLimit(at: Cursor): AdmissionSettings {
  const { limits } = projectFile.parse(at);
  return {
    projectRequestLimits: limits.map(({ selector = [], maxProjects }) => ({
      selector: Object.fromEntries(selector),
      maxProjects,
    })),
  };
}

const webhookFile = object(
  {
    apiVersion: oneOf('apiserver.config.k8s.io/v1', 'apiserver.config.k8s.io/v1alpha1'),
    kind: oneOf('WebhookAdmissionConfiguration', 'WebhookAdmission'),
    kubeConfigFile: checkedString((value) =>
      value === '' || value.startsWith('/') ? undefined : 'must be an absolute file path',
    ),
  },
  ['apiVersion', 'kind'],
);

const webhooks =
  (which: keyof AdmissionKubeconfigs) =>
  (at: Cursor): PluginSettings => {
    const { kubeConfigFile = '' } = webhookFile.parse(at);
    return kubeConfigFile === '' ? {} : { [which]: kubeConfigFile };
  };

/** Kubeconfig files with the client credentials for webhooks. */
interface AdmissionKubeconfigs {
  readonly mutatingKubeconfig?: string;
  readonly validatingKubeconfig?: string;
}

type PluginSettings = AdmissionSettings & AdmissionKubeconfigs;

const READERS: Readonly<Record<string, (at: Cursor) => PluginSettings>> = {
  EventRateLimit: eventRateLimit,
  MutatingAdmissionWebhook: webhooks('mutatingKubeconfig'),
  PodNodeSelector: podNodeSelector,
  PodSecurity: podSecurity,
  PodTolerationRestriction: podTolerations,
  ProjectRequestLimit: projectRequestLimit,
  ResourceQuota: resourceQuota,
  ValidatingAdmissionWebhook: webhooks('validatingKubeconfig'),
};

/**
 * Parses the file and the files to which it refers. `read` returns the text of a file. Throws CodedError 'bad-config'
 * with file, line and field.
 */
export async function parseAdmission(
  text: string,
  path: string,
  read: (path: string) => Promise<string>,
): Promise<PluginSettings> {
  const { plugins = [] } = parseConfig(text, path, file);
  let settings: PluginSettings = {};
  const seen = new Set<string>();
  for (const [index, plugin] of plugins.entries()) {
    const refuse = (what: string): never => {
      throw new CodedError('bad-config', `${path}: plugins[${index}].${what}`);
    };
    const reader = Object.hasOwn(READERS, plugin.name) ? READERS[plugin.name] : undefined;
    if (reader === undefined) {
      const known = Object.keys(READERS).join(', ');
      return refuse(`name: "${plugin.name}" takes no configuration here; remove the entry (those that do: ${known})`);
    }
    if (seen.has(plugin.name)) refuse(`name: "${plugin.name}" is given twice; write one entry for a plug-in`);
    seen.add(plugin.name);
    if (plugin.path !== undefined && plugin.configuration !== undefined) {
      refuse('path: and configuration exclude each other; remove one');
    }
    if (plugin.configuration !== undefined) settings = { ...settings, ...reader(plugin.configuration) };
    else if (plugin.path !== undefined && plugin.path !== '') {
      settings = { ...settings, ...parseConfig(await read(plugin.path), plugin.path, { parse: reader }) };
    }
  }
  return settings;
}
