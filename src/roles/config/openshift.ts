/** OpenShift's layer: `openshift` of the bootstrap file, and of the master's configuration. */
import { object, oneOf, type Parsed, string } from './strict-yaml.ts';

const DNS_NAME = {
  pattern: /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
  fix: 'give a DNS domain such as apps.lab.example',
};

/** The same in both files. `domain`: of routes without a host. */
export const openshiftField = () => object({ profile: oneOf('kubernetes', 'okd'), domain: string({ ...DNS_NAME }) });

type OpenShiftFile = Parsed<{ openshift: ReturnType<typeof openshiftField> }, 'openshift'>['openshift'];

export interface OpenShiftSettings {
  /** `okd`: security context constraints are enforced, and users may request projects. */
  readonly profile: 'kubernetes' | 'okd';
  /** Routes without a host get NAME-NAMESPACE.DOMAIN. */
  readonly domain: string;
}

const DEFAULT_DOMAIN = 'apps.cluster.local';

export const openshiftOf = (file: OpenShiftFile | undefined): OpenShiftSettings => ({
  profile: file?.profile ?? 'kubernetes',
  domain: file?.domain ?? DEFAULT_DOMAIN,
});
