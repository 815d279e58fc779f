/** Kinds of OpenShift's groups, served under both profiles. */
import { images } from '../kinds/images/index.ts';
import {
  imageSignatures,
  imageStreamImages,
  imageStreamImports,
  imageStreamMappings,
  imageStreams,
  imageStreamTags,
  imageTags,
} from '../kinds/imagestreams/index.ts';
import { routes } from '../kinds/routes/index.ts';
import { brokerTemplateInstances, templateInstances } from '../kinds/templateinstances/index.ts';
import { processedTemplates, templates } from '../kinds/templates/index.ts';
import type { KindDefinition } from './definition.ts';

export const openshiftKinds: readonly KindDefinition[] = [
  routes,
  // Of two resources of one kind, clients take the latter: that is the one that is stored.
  processedTemplates,
  templates,
  templateInstances,
  brokerTemplateInstances,
  images,
  imageStreams,
  imageStreamTags,
  imageTags,
  imageStreamImages,
  imageStreamImports,
  imageStreamMappings,
  imageSignatures,
];
