#!/usr/bin/env python3
"""bench/make_models.py --out DIR [--models a,b] [--zoo-tools FOLDER] [--list]: models beside the zoo's, with random weights.

Well-known architectures at small and medium sizes, in the zoo's format: DIR/NAME holds graph.pb, model.json, inputs.npz
and expected.npz, what TensorFlow computes (oneDNN off). Weights and inputs are seeded. tf1_* are graphs of placeholders
and variables, frozen as TensorFlow 1 did; the others are Keras models. make_zoo.py, which writes most of the files, lies
in --zoo-tools ($SHARED/zoo or ../shared/zoo by default); its requirements.txt names the Python packages needed. A model
that DIR has is skipped.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

# The modules of bench/models and the functions in them that each build a model: known without loading TensorFlow.
FAMILIES = {
    "mlp": "mlp_wide_b1 mlp_b128 tf1_mlp_bn vae_dense dlrm dcn pointnet dgcnn",
    "classify": "lenet tf1_mnist squeezenet resnet18 resnet34_160 resnext_like regnet_se shufflenet_v1 shufflenet_v2 "
                "mobilenet_v1_050_160 mobilenet_v2_035_96 efficientnet_lite nchw_like_torch tf1_inception "
                "tf1_resnet_v2_cifar cnn3d repvgg_train poolformer video_2plus1d",
    "pixels": "ssd_mnv1 yolov5_like yolo_tiny fast_scnn tf1_deeplab fcn_transpose deeplab_mnv2 unet unet_up "
              "style_transfer srcnn espcn edsr fsrcnn dcgan ae_conv centernet dynamic_conv srgan bifpn",
    "attention": "t5_encoder mlp_mixer vit_small gpt2_like distilbert_like llama_like gpt_decode_step mobilebert_like "
                 "swin_like conformer linear_attention window_attention segformer_like deberta_like",
    "converted": "torch_mobile_se torch_unet torch_shuffle",
    "sequence": "lstm_b1 stacked_lstm stacked_gru_b16 gru_b8 gru_reset bilstm seq2seq_attention crnn_ocr text_cnn tcn "
                "wavenet res1d_ecg yamnet_like tf1_kws_dscnn vocoder conv_tasnet tf1_dynamic_rnn",
}
# Those of keras.applications: class and pixels of a side.
APPLICATIONS = {
    "mobilenet_v1": ("MobileNet", 224), "xception": ("Xception", 299), "densenet121": ("DenseNet121", 224),
    "nasnet_mobile": ("NASNetMobile", 224), "mobilenet_v3_large": ("MobileNetV3Large", 224),
    "efficientnet_v2b0": ("EfficientNetV2B0", 224), "convnext_tiny": ("ConvNeXtTiny", 224),
}


def build(name, out):
    import make_zoo
    import tensorflow as tf
    if name in APPLICATIONS:
        constructor, size = APPLICATIONS[name]
        return make_zoo.keras_app(out, name, getattr(tf.keras.applications, constructor), size, None)
    from models import common
    family = next(f for f, names in FAMILIES.items() if name in names.split())
    define = getattr(__import__("models." + family, fromlist=[name]), name)
    (common.Frozen if name.startswith("tf1_") else common.Keras)(name).write(define, out)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    names = [n for f in FAMILIES.values() for n in f.split()] + list(APPLICATIONS)
    shared = os.environ.get("SHARED", os.path.join(here, "..", "..", "shared"))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out")
    p.add_argument("--models", default=",".join(names))
    p.add_argument("--zoo-tools", default=os.path.join(shared, "zoo"))
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    if a.list:
        print("\n".join(names))
        return
    if not a.out:
        p.error("--out is missing")
    unknown = [n for n in a.models.split(",") if n not in names]
    if unknown:
        p.error(f"no such model: {', '.join(unknown)}")
    sys.path[:0] = [here, a.zoo_tools]
    os.makedirs(a.out, exist_ok=True)
    for name in a.models.split(","):
        if os.path.exists(os.path.join(a.out, name)):
            continue
        start = time.time()
        with tempfile.TemporaryDirectory(dir=a.out, prefix=".") as whole:  # a model is there when all of it is
            build(name, whole)
            shutil.move(os.path.join(whole, name), os.path.join(a.out, name))
        print(f"{name} done in {time.time() - start:.1f} s", flush=True)


main()
