/**
 * Messages of CustomResourceDefinition, in the format of `named-messages.ts`. Source: generated.proto and types.go of
 * k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 1.36.
 */
const PACKAGE = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/** Types of a schema whose JSON form is not a structure. */
export const SCHEMA_TYPES = {
  props: `${PACKAGE}.JSONSchemaProps`,
  json: `${PACKAGE}.JSON`,
  orArray: `${PACKAGE}.JSONSchemaPropsOrArray`,
  orBool: `${PACKAGE}.JSONSchemaPropsOrBool`,
  orStrings: `${PACKAGE}.JSONSchemaPropsOrStringArray`,
} as const;

export const EXTENSION_MESSAGES: Readonly<Record<string, string>> = {
  [`${PACKAGE}.CustomResourceColumnDefinition`]:
    '1 name s;2 type s;3 format s!;4 description s!;5 priority i!;6 jsonPath s',
  [`${PACKAGE}.CustomResourceConversion`]: `1 strategy s;2 webhook m{${PACKAGE}.WebhookConversion}`,
  [`${PACKAGE}.CustomResourceDefinition`]: [
    `1 metadata m{${META}.ObjectMeta};2 spec m{${PACKAGE}.CustomResourceDefinitionSpec}`,
    `3 status m{${PACKAGE}.CustomResourceDefinitionStatus}`,
  ].join(';'),
  [`${PACKAGE}.CustomResourceDefinitionCondition`]: [
    `1 type s;2 status s;3 lastTransitionTime m{${META}.Time};4 reason s!;5 message s!`,
    '6 observedGeneration i!',
  ].join(';'),
  [`${PACKAGE}.CustomResourceDefinitionNames`]:
    '1 plural s;2 singular s!;3 shortNames *s;4 kind s;5 listKind s!;6 categories *s',
  [`${PACKAGE}.CustomResourceDefinitionSpec`]: [
    `1 group s;3 names m{${PACKAGE}.CustomResourceDefinitionNames};4 scope s`,
    `7 versions *m{${PACKAGE}.CustomResourceDefinitionVersion}`,
    `9 conversion m{${PACKAGE}.CustomResourceConversion};10 preserveUnknownFields b!`,
  ].join(';'),
  [`${PACKAGE}.CustomResourceDefinitionStatus`]: [
    `1 conditions *m{${PACKAGE}.CustomResourceDefinitionCondition}`,
    `2 acceptedNames m{${PACKAGE}.CustomResourceDefinitionNames};3 storedVersions *s`,
    '4 observedGeneration i!',
  ].join(';'),
  [`${PACKAGE}.CustomResourceDefinitionVersion`]: [
    '1 name s;2 served b;3 storage b;7 deprecated b!;8 deprecationWarning s',
    `4 schema m{${PACKAGE}.CustomResourceValidation}`,
    `5 subresources m{${PACKAGE}.CustomResourceSubresources}`,
    `6 additionalPrinterColumns *m{${PACKAGE}.CustomResourceColumnDefinition}`,
    `9 selectableFields *m{${PACKAGE}.SelectableField}`,
  ].join(';'),
  [`${PACKAGE}.CustomResourceSubresourceScale`]: '1 specReplicasPath s;2 statusReplicasPath s;3 labelSelectorPath s',
  [`${PACKAGE}.CustomResourceSubresourceStatus`]: '',
  [`${PACKAGE}.CustomResourceSubresources`]: [
    `1 status m{${PACKAGE}.CustomResourceSubresourceStatus}`,
    `2 scale m{${PACKAGE}.CustomResourceSubresourceScale}`,
  ].join(';'),
  [`${PACKAGE}.CustomResourceValidation`]: `1 openAPIV3Schema m{${PACKAGE}.JSONSchemaProps}`,
  [`${PACKAGE}.ExternalDocumentation`]: '1 description s!;2 url s!',
  [`${PACKAGE}.JSONSchemaProps`]: [
    '1 id s!;2 $schema s!;3 $ref s;4 description s!;5 type s!;6 format s!;7 title s!',
    `8 default m{${PACKAGE}.JSON};9 maximum d;10 exclusiveMaximum b!;11 minimum d;12 exclusiveMinimum b!`,
    '13 maxLength i;14 minLength i;15 pattern s!;16 maxItems i;17 minItems i;18 uniqueItems b!',
    `19 multipleOf d;20 enum *m{${PACKAGE}.JSON};21 maxProperties i;22 minProperties i;23 required *s`,
    `24 items m{${PACKAGE}.JSONSchemaPropsOrArray};25 allOf *m{${PACKAGE}.JSONSchemaProps}`,
    `26 oneOf *m{${PACKAGE}.JSONSchemaProps};27 anyOf *m{${PACKAGE}.JSONSchemaProps}`,
    `28 not m{${PACKAGE}.JSONSchemaProps};29 properties %m{${PACKAGE}.JSONSchemaProps}`,
    `30 additionalProperties m{${PACKAGE}.JSONSchemaPropsOrBool}`,
    `31 patternProperties %m{${PACKAGE}.JSONSchemaProps}`,
    `32 dependencies %m{${PACKAGE}.JSONSchemaPropsOrStringArray}`,
    `33 additionalItems m{${PACKAGE}.JSONSchemaPropsOrBool};34 definitions %m{${PACKAGE}.JSONSchemaProps}`,
    `35 externalDocs m{${PACKAGE}.ExternalDocumentation};36 example m{${PACKAGE}.JSON};37 nullable b!`,
    '38 x-kubernetes-preserve-unknown-fields b;39 x-kubernetes-embedded-resource b!',
    '40 x-kubernetes-int-or-string b!;41 x-kubernetes-list-map-keys *s;42 x-kubernetes-list-type s',
    `43 x-kubernetes-map-type s;44 x-kubernetes-validations *m{${PACKAGE}.ValidationRule}`,
  ].join(';'),
  [`${PACKAGE}.SelectableField`]: '1 jsonPath s',
  [`${PACKAGE}.ServiceReference`]: '1 namespace s;2 name s;3 path s;4 port i',
  [`${PACKAGE}.ValidationRule`]:
    '1 rule s;2 message s!;3 messageExpression s!;4 reason s;5 fieldPath s!;6 optionalOldSelf b',
  [`${PACKAGE}.WebhookClientConfig`]: `3 url s;1 service m{${PACKAGE}.ServiceReference};2 caBundle y!`,
  [`${PACKAGE}.WebhookConversion`]: `2 clientConfig m{${PACKAGE}.WebhookClientConfig};3 conversionReviewVersions *s`,
  [SCHEMA_TYPES.json]: '',
  [SCHEMA_TYPES.orArray]: '',
  [SCHEMA_TYPES.orBool]: '',
  [SCHEMA_TYPES.orStrings]: '',
};
