/**
 * Optional functions of a host that upstream's components do not have. Fields of the bootstrap file enable or disable
 * them.
 */
import { join } from 'node:path';
import type { RuntimeConfig } from '../../api/registry/runtime-config.ts';
import { runtimeConfigField } from '../../apiserver/config/runtime-config.ts';
import { effectiveLogging, forwardOf, loggingField } from '../../logging/config/forward.ts';
import type { ForwardSettings } from '../../logging/port.ts';
import { boolean, object, type Parsed, string } from '../../wire/strict-yaml.ts';

const absolutePath = () => string({ pattern: /^\//, fix: 'give an absolute path' });

export const embeddedShape = {
  metrics: object({ enabled: boolean() }),
  console: object({ enabled: boolean() }),
  runtimeConfig: runtimeConfigField(),
  logging: loggingField(),
  manifests: object({ enabled: boolean(), directory: absolutePath() }),
  images: object({
    importAtStart: boolean(),
    directory: absolutePath(),
    verifyAtBoot: boolean(),
    registriesFile: absolutePath(),
    credentialProviders: object({ config: absolutePath(), directory: absolutePath() }, ['config', 'directory']),
  }),
} as const;

type EmbeddedFile = Partial<Parsed<typeof embeddedShape, never>>;

export interface Embedded {
  /** Whether `metrics.k8s.io` is served. */
  readonly metrics: boolean;
  /** Whether the API server of this host serves the web console. */
  readonly console: boolean;
  /** Enabled and disabled built-in APIs. */
  readonly runtimeConfig: RuntimeConfig;
  /** Receiver of this host's logs; undefined if they are not forwarded. */
  readonly logForward: ForwardSettings | undefined;
  /** The deploy directory; undefined if disabled. */
  readonly manifests: string | undefined;
  readonly images: {
    /** Directory of archives to import at start; undefined if disabled. */
    readonly directory: string | undefined;
    readonly verifyAtBoot: boolean;
    readonly registriesFile: string;
    /** The kubelet's exec plug-ins: a CredentialProviderConfig and the directory of the programs. */
    readonly credentialProviders: { readonly config: string; readonly directory: string } | undefined;
  };
}

export function embeddedOf(root: string, file: EmbeddedFile | undefined): Embedded {
  const { metrics, console, manifests, images, logging, runtimeConfig = new Map() } = file ?? {};
  return {
    runtimeConfig,
    metrics: metrics?.enabled ?? true,
    console: console?.enabled ?? true,
    logForward: forwardOf(logging),
    manifests: (manifests?.enabled ?? true) ? (manifests?.directory ?? join(root, 'etc/origin/manifests')) : undefined,
    images: {
      directory:
        (images?.importAtStart ?? true) ? (images?.directory ?? join(root, 'var/lib/origin/images.d')) : undefined,
      verifyAtBoot: images?.verifyAtBoot ?? true,
      registriesFile: images?.registriesFile ?? join(root, 'etc/origin/registries.yaml'),
      credentialProviders: images?.credentialProviders,
    },
  };
}

/** Fields of these functions for `hyperedge config show`. */
export const effectiveEmbedded = ({
  metrics,
  console,
  manifests,
  images,
  logForward,
  runtimeConfig,
}: Embedded): [string, unknown][] => [
  ['metrics.enabled', metrics],
  ['console.enabled', console],
  ...[...runtimeConfig].map(([name, on]): [string, unknown] => [`runtimeConfig.${name}`, on]),
  ['manifests.enabled', manifests !== undefined],
  ...(manifests === undefined ? [] : ([['manifests.directory', manifests]] as [string, unknown][])),
  ['images.importAtStart', images.directory !== undefined],
  ...(images.directory === undefined ? [] : ([['images.directory', images.directory]] as [string, unknown][])),
  ['images.verifyAtBoot', images.verifyAtBoot],
  ['images.registriesFile', images.registriesFile],
  ...effectiveLogging(logForward),
];
