/** image.openshift.io/v1. Source: openshift/api image/v1 of release 4.10, field names and meaning. */
import { type DeclaredField, declarePackage } from './declare.ts';

const imageFields: Readonly<Record<string, DeclaredField>> = {
  dockerImageReference: ['string', 'Pull specification of the image.'],
  dockerImageMetadata: ['any', 'Configuration of the image.'],
  dockerImageMetadataVersion: ['string', 'Version of dockerImageMetadata.'],
  dockerImageManifest: ['string', 'Manifest of the image.'],
  dockerImageLayers: ['[]#ImageLayer', 'Layers of the image.'],
  signatures: ['[]#ImageSignature', 'Signatures of the image.'],
  dockerImageSignatures: ['[]byte', 'Signatures of the manifest.'],
  dockerImageManifestMediaType: ['string', 'Media type of the manifest.'],
  dockerImageConfig: ['string', 'Configuration as the registry holds it.'],
};

const tagFields: Readonly<Record<string, DeclaredField>> = {
  name: ['!string', 'Name of the tag.'],
  annotations: ['{}string', 'Annotations of the tag.'],
  from: ['#core.ObjectReference', 'Source of the images of the tag: DockerImage, ImageStreamTag, ImageStreamImage.'],
  reference: ['boolean', 'The tag is only a reference; nothing is imported.'],
  generation: ['int64', 'Counts changes of the tag; an import that is older is to be done again.'],
  importPolicy: ['#TagImportPolicy', 'Settings for the import of the image.'],
  referencePolicy: ['#TagReferencePolicy', 'Resolution of references to the tag.'],
};

export const imagePackage = declarePackage('image.v1', {
  Image: {
    isKind: true,
    about: 'An image is an immutable set of layers with its configuration; its name is its digest.',
    fields: imageFields,
  },
  ImageLayer: {
    about: 'ImageLayer is one layer.',
    fields: {
      name: ['!string', 'Digest of the layer.'],
      size: ['!int64', 'Bytes.'],
      mediaType: ['!string', 'Media type of the layer.'],
    },
  },
  ImageSignature: {
    isRequest: true,
    about: 'An image signature is stored with the image; it is not verified.',
    fields: {
      type: ['!string', 'Type of the signature.'],
      content: ['!byte', 'The signature.'],
      imageIdentity: ['string', 'Identity of the image in the signature.'],
      signedClaims: ['{}string', 'Claims of the signature.'],
      created: ['date-time', 'When it was made.'],
    },
  },
  ImageStream: {
    isKind: true,
    about: 'An image stream is a history of images for each of its tags.',
    fields: {
      spec: ['#ImageStreamSpec', 'Source of the images.'],
      status: ['#ImageStreamStatus', 'Images of the tags.'],
    },
  },
  ImageStreamSpec: {
    about: 'ImageStreamSpec describes where images of the tags come from.',
    fields: {
      lookupPolicy: ['#ImageLookupPolicy', 'Objects that may refer to the stream by its name.'],
      dockerImageRepository: ['string', 'Repository from which tags are imported.'],
      tags: ['[]#TagReference', 'Tags with their sources.'],
    },
  },
  ImageLookupPolicy: {
    about: 'ImageLookupPolicy describes which objects may use the stream in the place of an image.',
    fields: { local: ['!boolean', 'Pods of the namespace may name an image by stream and tag alone.'] },
  },
  TagReference: { about: 'TagReference is a tag with its source.', fields: tagFields },
  TagImportPolicy: {
    about: 'TagImportPolicy is how an image is imported.',
    fields: {
      insecure: ['boolean', 'The registry may be reached without TLS.'],
      scheduled: ['boolean', 'The tag is imported again from time to time.'],
      importMode: ['string', 'Legacy or PreserveOriginal: whether lists of manifests stay whole.'],
    },
  },
  TagReferencePolicy: {
    about: 'TagReferencePolicy is how references to a tag are resolved.',
    fields: { type: ['!string', 'Source or Local.'] },
  },
  ImageStreamStatus: {
    about: 'ImageStreamStatus is the history of the tags.',
    fields: {
      dockerImageRepository: ['string', 'Repository of the stream in the integrated registry; empty without one.'],
      publicDockerImageRepository: ['string', 'The same from outside of the cluster.'],
      tags: ['[]#NamedTagEventList', 'Tags with their images, the latest first.'],
    },
  },
  NamedTagEventList: {
    about: 'NamedTagEventList is the history of a tag.',
    fields: {
      tag: ['!string', 'Name of the tag.'],
      items: ['![]#TagEvent', 'Images, the latest first.'],
      conditions: ['[]#TagEventCondition', 'Conditions of the tag.'],
    },
  },
  TagEvent: {
    about: 'TagEvent is an image that a tag has had.',
    fields: {
      created: ['!date-time', 'When the tag got the image.'],
      dockerImageReference: ['!string', 'Pull specification.'],
      image: ['!string', 'Name of the image.'],
      generation: ['!int64', 'Generation of the tag in the spec.'],
    },
  },
  TagEventCondition: {
    about: 'TagEventCondition is one aspect of the state of a tag.',
    fields: {
      type: ['!string', 'ImportSuccess.'],
      status: ['!string', 'True, False or Unknown.'],
      lastTransitionTime: ['date-time', 'When the status changed last.'],
      reason: ['string', 'One word for programs.'],
      message: ['string', 'Text for people.'],
      generation: ['!int64', 'Generation of the tag in the spec.'],
    },
  },
  ImageStreamTag: {
    isKind: true,
    about: 'An image stream tag is the latest image of a tag; its name is STREAM:TAG.',
    fields: {
      tag: ['#TagReference', 'The tag as the spec of the stream has it.'],
      generation: ['int64', 'Generation of the tag.'],
      lookupPolicy: ['#ImageLookupPolicy', 'That of the stream.'],
      conditions: ['[]#TagEventCondition', 'Conditions of the tag.'],
      image: ['#Image', 'The image.'],
    },
  },
  ImageTag: {
    isKind: true,
    about: 'An image tag is spec and status of one tag of a stream; its name is STREAM:TAG.',
    fields: {
      spec: ['#TagReference', 'The tag as the spec of the stream has it.'],
      status: ['#NamedTagEventList', 'The history of the tag.'],
      image: ['#Image', 'The latest image.'],
    },
  },
  ImageStreamImage: {
    isRequest: true,
    about: 'An image stream image is an image that a stream has; its name is STREAM@DIGEST.',
    fields: { image: ['!#Image', 'The image.'] },
  },
  ImageStreamMapping: {
    isRequest: true,
    about: 'An image stream mapping puts an image into a tag of a stream.',
    fields: { image: ['!#Image', 'The image.'], tag: ['string', 'The tag.'] },
  },
  ImageStreamLayers: {
    isRequest: true,
    about: 'Layers of the images of a stream.',
    fields: {
      blobs: ['{}#ImageLayerData', 'Layers by their digest.'],
      images: ['{}#ImageBlobReferences', 'Images by their name.'],
    },
  },
  ImageLayerData: {
    about: 'ImageLayerData is a layer.',
    fields: { size: ['int64', 'Bytes.'], mediaType: ['string', 'Media type.'] },
  },
  ImageBlobReferences: {
    about: 'ImageBlobReferences is what an image consists of.',
    fields: { layers: ['[]string', 'Digests of the layers.'], config: ['string', 'Digest of the configuration.'] },
  },
  ImageStreamImport: {
    isRequest: true,
    about: 'An image stream import searches images and optionally adds them to a stream.',
    fields: {
      spec: ['!#ImageStreamImportSpec', 'Images to import.'],
      status: ['#ImageStreamImportStatus', 'Result of the import.'],
    },
  },
  ImageStreamImportSpec: {
    about: 'ImageStreamImportSpec names images and repositories.',
    fields: {
      import: ['boolean', 'The stream is changed; else images are only looked up.'],
      repository: ['#RepositoryImportSpec', 'A repository whose tags are imported.'],
      images: ['[]#ImageImportSpec', 'Single images.'],
    },
  },
  RepositoryImportSpec: {
    about: 'RepositoryImportSpec names a repository.',
    fields: {
      from: ['!#core.ObjectReference', 'The repository, kind DockerImage.'],
      importPolicy: ['#TagImportPolicy', 'Settings for the import of images.'],
      referencePolicy: ['#TagReferencePolicy', 'Resolution of references.'],
      includeManifest: ['boolean', 'The answer has the manifest.'],
    },
  },
  ImageImportSpec: {
    about: 'ImageImportSpec names an image and the tag it is for.',
    fields: {
      from: ['!#core.ObjectReference', 'The image, kind DockerImage.'],
      to: ['#core.LocalObjectReference', 'The tag; default: that of the image.'],
      importPolicy: ['#TagImportPolicy', 'Settings for the import of the image.'],
      referencePolicy: ['#TagReferencePolicy', 'Resolution of references.'],
      includeManifest: ['boolean', 'The answer has the manifest.'],
    },
  },
  ImageStreamImportStatus: {
    about: 'ImageStreamImportStatus is what was found.',
    fields: {
      import: ['#ImageStream', 'The stream after the import.'],
      repository: ['#RepositoryImportStatus', 'Result for the repository.'],
      images: ['[]#ImageImportStatus', 'Results for the images, in their order.'],
    },
  },
  RepositoryImportStatus: {
    about: 'RepositoryImportStatus is what was found in a repository.',
    fields: {
      status: ['#meta.Status', 'Whether it was found.'],
      images: ['[]#ImageImportStatus', 'Images of the repository.'],
      additionalTags: ['[]string', 'Tags that were not imported.'],
    },
  },
  ImageImportStatus: {
    about: 'ImageImportStatus is an image that was found, or why it was not.',
    fields: {
      status: ['!#meta.Status', 'Whether it was found.'],
      image: ['#Image', 'The image.'],
      tag: ['string', 'The tag it was found by.'],
    },
  },
});
