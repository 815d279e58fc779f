/** Configuration of admission plug-ins, from upstream's AdmissionConfiguration. */
import type { Toleration } from '../../api/generated/core/v1.ts';
import type { LimitedResource } from '../../api/quota/check.ts';
import type { Labels } from '../../base/selector.ts';
import type { Policy } from '../core/pod-security/policy.ts';
import type { WebhookIdentities } from '../webhooks/identities.ts';

export interface PodSecuritySettings {
  /** Profiles of namespaces without labels. */
  readonly defaults: Policy;
  readonly exemptions: {
    readonly usernames: ReadonlySet<string>;
    readonly namespaces: ReadonlySet<string>;
    readonly runtimeClasses: ReadonlySet<string>;
  };
}

export interface PodNodeSelectorSettings {
  /** Node selector of namespaces without an annotation. */
  readonly clusterDefault: Labels;
  /** Node labels that the node selectors of pods may contain, by namespace. Empty: any label. */
  readonly whitelists: ReadonlyMap<string, Labels>;
}

export interface PodTolerationSettings {
  readonly defaults: readonly Toleration[];
  readonly whitelist: readonly Toleration[];
}

export interface EventLimit {
  readonly type: 'Server' | 'Namespace' | 'User' | 'SourceAndObject';
  readonly qps: number;
  readonly burst: number;
  readonly cacheSize: number;
}

/** Seconds that a pod without its own tolerations stays on a node that is not ready or unreachable. */
export interface TolerationSeconds {
  readonly notReady: number;
  readonly unreachable: number;
}

/** Limit of project requests for users with certain labels. The first entry that matches a user applies. */
export interface ProjectRequestLimit {
  /** Labels of users; empty: every user. */
  readonly selector: Labels;
  /** Maximum number of requested projects. Undefined: unlimited. */
  readonly maxProjects: number | undefined;
}

/** Settings of the plug-ins. An absent setting means the default of the plug-in. */
export interface AdmissionSettings {
  /** Toleration seconds of DefaultTolerationSeconds. Default: 300 each. */
  readonly tolerationSeconds?: TolerationSeconds;
  readonly podSecurity?: PodSecuritySettings;
  readonly podNodeSelector?: PodNodeSelectorSettings;
  readonly podTolerations?: PodTolerationSettings;
  readonly eventLimits?: readonly EventLimit[];
  /** Limits of project requests. Default: no limits. */
  readonly projectRequestLimits?: readonly ProjectRequestLimit[];
  /** Resources that may be used only where a quota covers them, by `plural.group`. */
  readonly limitedResources?: ReadonlyMap<string, readonly LimitedResource[]>;
  /** Client credentials for mutating and validating webhooks. Absent: none. */
  readonly mutatingAs?: WebhookIdentities;
  readonly validatingAs?: WebhookIdentities;
}
