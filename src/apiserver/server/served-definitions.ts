/** The built-in kinds as this server is configured to serve them. */
import type { KindDefinition } from '../../api/registry/definition.ts';
import { builtinKinds } from '../../api/registry/index.ts';
import { shortNamesOf } from '../../api/registry/openshift.ts';
import { switchVersions } from '../../api/registry/runtime-config.ts';
import { refineAdmissionKind } from '../admission/refine.ts';
import type { ApiServerConfig } from '../config/server-config.ts';
import { refuseBuiltIn } from '../custom-resources/built-in.ts';
import { refineKind } from '../custom-resources/compile-rules.ts';

/** All built-in kinds. Versions that runtimeConfig switches off are marked as unserved. */
export function servedDefinitions({
  eventTtlSeconds,
  openshift,
  runtimeConfig,
  upstreamOnly,
}: Pick<
  ApiServerConfig,
  'eventTtlSeconds' | 'openshift' | 'runtimeConfig' | 'upstreamOnly'
>): readonly KindDefinition[] {
  const refined = (each: KindDefinition): KindDefinition =>
    refineAdmissionKind(refineKind(expiring(each, eventTtlSeconds)));
  const served = switchVersions(
    builtinKinds.map((each) => shortNamesOf(refined(each), openshift?.profile)),
    runtimeConfig ?? new Map(),
    upstreamOnly,
  );
  return served.map((each) => refuseBuiltIn(each, served));
}

/** Applies the configured lifetime to Events. */
function expiring(kind: KindDefinition, seconds: number | undefined): KindDefinition {
  return kind.plural !== 'events' || seconds === undefined ? kind : { ...kind, ttlSeconds: seconds };
}
