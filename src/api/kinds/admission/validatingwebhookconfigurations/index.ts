/**
 * Validating webhook configurations. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration.
 */

import { olderWebhooks, setWebhookDefaults, webhookStrategy } from '../../../admission-rules/webhooks.ts';
import type { ValidatingWebhookConfiguration } from '../../../generated/admissionregistration/v1.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';

export const validatingWebhookConfigurations: KindDefinition<ValidatingWebhookConfiguration> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  singular: 'validatingwebhookconfiguration',
  listKind: 'ValidatingWebhookConfigurationList',
  namespaced: false,
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration',
  storagePrefix: 'validatingwebhookconfigurations',
  allowUnconditionalUpdate: false,
  aliases: [olderWebhooks()],
  setDefaults(configuration) {
    for (const webhook of configuration.webhooks ?? []) setWebhookDefaults(webhook);
  },
  strategy: webhookStrategy,
  columns: [
    nameColumn,
    column<ValidatingWebhookConfiguration>('Webhooks', 'Number of webhooks.', (each) => each.webhooks?.length ?? 0, {
      type: 'integer',
    }),
    ageColumn,
  ],
};
