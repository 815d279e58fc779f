/** What plug-ins can be told beside whether they run: upstream's AdmissionConfiguration. */
import type { Policy } from '../../../core/podsecurity/policy.ts';
import type { LimitedResource } from '../../../core/quota/check.ts';

export interface PodSecuritySettings {
  /** For namespaces whose labels do not say. */
  readonly defaults: Policy;
  readonly exemptions: {
    readonly usernames: ReadonlySet<string>;
    readonly namespaces: ReadonlySet<string>;
    readonly runtimeClasses: ReadonlySet<string>;
  };
}

/** Each absent: the plug-in's defaults. */
export interface AdmissionSettings {
  readonly podSecurity?: PodSecuritySettings;
  /** What may be used only where a quota covers it, by `plural.group`. */
  readonly limitedResources?: ReadonlyMap<string, readonly LimitedResource[]>;
}
