/** Configuration of admission plug-ins: upstream's AdmissionConfiguration. */
import type { Toleration } from 'kubernetes-types/core/v1';
import type { Labels } from '../../../base/selector.ts';
import type { Policy } from '../../../core/podsecurity/policy.ts';
import type { LimitedResource } from '../../../core/quota/check.ts';
import type { WebhookIdentities } from '../webhooks/identities.ts';

export interface PodSecuritySettings {
  /** For namespaces whose labels do not say. */
  readonly defaults: Policy;
  readonly exemptions: {
    readonly usernames: ReadonlySet<string>;
    readonly namespaces: ReadonlySet<string>;
    readonly runtimeClasses: ReadonlySet<string>;
  };
}

export interface PodNodeSelectorSettings {
  /** For namespaces without an annotation. */
  readonly clusterDefault: Labels;
  /** By namespace: labels that pods there may select by; none: any. */
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
  /** How many keys are remembered. */
  readonly cacheSize: number;
}

/** How long pods that say nothing of it stay on a node, in seconds. */
export interface TolerationSeconds {
  readonly notReady: number;
  readonly unreachable: number;
}

/** How many projects users may have requested, by their labels; the first that fits a user counts. */
export interface ProjectRequestLimit {
  /** Labels of users; empty: every user. */
  readonly selector: Labels;
  /** Undefined: any number. */
  readonly maxProjects: number | undefined;
}

/** Each absent: the plug-in's defaults. */
export interface AdmissionSettings {
  /** Default: 300 each. */
  readonly tolerationSeconds?: TolerationSeconds;
  readonly podSecurity?: PodSecuritySettings;
  readonly podNodeSelector?: PodNodeSelectorSettings;
  readonly podTolerations?: PodTolerationSettings;
  readonly eventLimits?: readonly EventLimit[];
  /** Default: none. */
  readonly projectRequestLimits?: readonly ProjectRequestLimit[];
  /** What may be used only where a quota covers it, by `plural.group`. */
  readonly limitedResources?: ReadonlyMap<string, readonly LimitedResource[]>;
  /** Client credentials for mutating and validating webhooks; absent: none. */
  readonly mutatingAs?: WebhookIdentities;
  readonly validatingAs?: WebhookIdentities;
}
